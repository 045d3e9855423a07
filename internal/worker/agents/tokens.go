package agents

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"compactd/internal/events"
)

// Role is what a token may do.
type Role string

// The roles of tokens.
const (
	RoleAgent    Role = "agent"    // publish, read and receive sessions of one tenant
	RoleOperator Role = "operator" // the same for every tenant, and the health of the worker
	RoleSession  Role = "session"  // look up one session over MCP, for the model of the session
)

// anyTenant is the tenant of an operator in the file.
const anyTenant = "*"

// maxTokensFile bounds the file: some 100,000 tokens.
const maxTokensFile = 16 << 20

// hash is the SHA-256 of a token: the file has no token.
type hash [sha256.Size]byte

// token is one line of the file.
type token struct {
	hash    hash
	tenant  string // [anyTenant] for an operator
	session string // the id of the one session; "" for other roles
	role    Role
	part    string        // of its tenant, for the limiter
	expires time.Time     // the zero value is never
	rate    *rate.Limiter // of its requests; it lasts as long as the token is in the file
}

// valid reports whether a token may be used at a time.
func (t *token) valid(now time.Time) bool { return t.expires.IsZero() || now.Before(t.expires) }

// mayUse reports whether a token is for a tenant. One of a session is for paths of MCP alone;
// see guard.
func (t *token) mayUse(tenant string) bool { return t.role == RoleOperator || t.tenant == tenant }

// tokens are those of one state of the file.
type tokens struct {
	byHash map[hash]*token
	state  fileState
}

// fileState shows whether a file has changed.
type fileState struct {
	changed time.Time
	size    int64
}

// find returns the token of a request, nil for none. Where the hash is found depends on the
// hash alone, which no client can choose; the comparison takes the same time for any.
func (t *tokens) find(secret string, now time.Time) *token {
	h := hash(sha256.Sum256([]byte(secret)))
	found := cmp.Or(t.byHash[h], noToken)
	if subtle.ConstantTimeCompare(found.hash[:], h[:]) == 0 || !found.valid(now) {
		return nil
	}
	return found
}

// noToken is compared with where there is no token of a hash. No text is known with the hash 0.
var noToken = &token{}

// readTokens reads the file. Tokens of before keep their rate.
func readTokens(path string, perSecond, burst int, before *tokens) (*tokens, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if info.Size() > maxTokensFile {
		return nil, fmt.Errorf("read tokens: %s has more than %d bytes", path, maxTokensFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	out := &tokens{byHash: map[hash]*token{}, state: stateOf(info)}
	var errs []error
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		t, err := parseToken(strings.Fields(line))
		if err == nil && out.byHash[t.hash] != nil {
			err = errors.New("the token is on an earlier line too")
		}
		if err != nil {
			if errs = append(errs, fmt.Errorf("line %d: %w", n, err)); len(errs) == maxErrors {
				break
			}
			continue
		}
		if t.rate = rate.NewLimiter(rate.Limit(perSecond), burst); before != nil && before.byHash[t.hash] != nil {
			t.rate = before.byHash[t.hash].rate
		}
		out.byHash[t.hash] = t
	}
	if err := cmp.Or(errors.Join(errs...), lines.Err()); err != nil {
		return nil, fmt.Errorf("read tokens: %s: %w", path, err)
	}
	return out, nil
}

// maxErrors is how many bad lines are reported.
const maxErrors = 8

func stateOf(info fs.FileInfo) fileState { return fileState{info.ModTime(), info.Size()} }

// parseToken reads HASH TENANT ROLE [EXPIRES]. Its error shows nothing of the hash.
func parseToken(fields []string) (*token, error) {
	if len(fields) < 3 || len(fields) > 4 {
		return nil, errors.New("want the SHA-256 of a token, its tenant, its role, and perhaps when it expires")
	}
	t := &token{tenant: fields[1], role: Role(fields[2])}
	if t.role == RoleSession {
		t.tenant, t.session, _ = strings.Cut(fields[1], "/")
	}
	sum, err := hex.DecodeString(fields[0])
	switch {
	case err != nil || len(sum) != len(t.hash):
		return nil, errors.New("the first field is not the SHA-256 of a token, 64 hexadecimal digits")
	case t.role != RoleAgent && t.role != RoleOperator && t.role != RoleSession:
		return nil, fmt.Errorf("the role must be one of %s, %s, %s", RoleAgent, RoleOperator, RoleSession)
	case t.role == RoleSession && (events.Address{Tenant: t.tenant, Session: t.session}).Validate() != nil:
		return nil, errors.New("a session is named as tenant/session, with the id that sessions lists")
	case t.role == RoleOperator && t.tenant != anyTenant:
		return nil, fmt.Errorf("the tenant of an operator must be %s: it is for all", anyTenant)
	case t.role == RoleAgent && !events.ValidID(t.tenant):
		return nil, errors.New("the tenant is not 1 to 64 of A-Z a-z 0-9 _ -")
	}
	copy(t.hash[:], sum)
	t.part = fields[0]
	if len(fields) == 4 {
		if t.expires, err = time.Parse(time.RFC3339, fields[3]); err != nil {
			return nil, errors.New("the time at which the token expires is not like 2027-01-31T00:00:00Z")
		}
	}
	return t, nil
}

// reload reads the file again if it has changed since, or in any case. A file that cannot be
// read leaves the tokens as they are.
func (e *Edge) reload(always bool) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	before := e.tokens.Load()
	info, err := os.Stat(e.config.Tokens)
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	if !always && stateOf(info) == before.state {
		return nil
	}
	now, err := readTokens(e.config.Tokens, e.config.Rate, e.burst(), before)
	if err != nil {
		return err
	}
	e.tokens.Store(now)
	e.hub.revoke(now)
	return nil
}
