package tokens

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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

// AnyTenant is the tenant of an operator in the file.
const AnyTenant = "*"

const (
	maxFile   = 16 << 20 // bytes: some 100,000 tokens
	maxErrors = 8        // bad lines that are reported
)

// Hash is the SHA-256 of a token.
type Hash [sha256.Size]byte

// HashOf is the hash of the text that a client sends.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Token is one line of the file.
type Token struct {
	Hash    Hash
	Tenant  string // [AnyTenant] for an operator
	Session string // the id of the one session; "" for other roles
	Role    Role
	Expires time.Time // the zero value is never
}

// Valid reports whether a token may be used at a time.
func (t *Token) Valid(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// MayUse reports whether a token is for a tenant.
func (t *Token) MayUse(tenant string) bool { return t.Role == RoleOperator || t.Tenant == tenant }

// Read returns the tokens of a file, in its order.
func Read(path string) ([]Token, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read tokens: %s has more than %d bytes", path, maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	var out []Token
	var errs []error
	seen := map[Hash]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan() && len(errs) < maxErrors; n++ {
		t, err := parse(lines.Text())
		if err == nil && t != nil && seen[t.Hash] {
			err = errors.New("the token is on an earlier line too")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
		} else if t != nil {
			seen[t.Hash] = true
			out = append(out, *t)
		}
	}
	if err := cmp.Or(errors.Join(errs...), lines.Err()); err != nil {
		return nil, fmt.Errorf("read tokens: %s: %w", path, err)
	}
	return out, nil
}

// parse reads HASH TENANT ROLE [EXPIRES]; nil is a line without a token. Its error shows nothing of the hash.
func parse(line string) (*Token, error) {
	line, _, _ = strings.Cut(line, "#")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil, nil
	}
	if len(fields) < 3 || len(fields) > 4 {
		return nil, errors.New("want the SHA-256 of a token, its tenant, its role, and perhaps when it expires")
	}
	t := &Token{Tenant: fields[1], Role: Role(fields[2])}
	if t.Role == RoleSession {
		t.Tenant, t.Session, _ = strings.Cut(fields[1], "/")
	}
	sum, err := hex.DecodeString(fields[0])
	if err != nil || len(sum) != len(t.Hash) {
		return nil, errors.New("the first field is not the SHA-256 of a token, 64 hexadecimal digits")
	}
	copy(t.Hash[:], sum)
	if len(fields) == 4 {
		if t.Expires, err = time.Parse(time.RFC3339, fields[3]); err != nil {
			return nil, errors.New("the time at which the token expires is not like 2027-01-31T00:00:00Z")
		}
	}
	return t, t.validate()
}

// validate checks that tenant and session are those of a role.
func (t *Token) validate() error {
	switch {
	case t.Role != RoleAgent && t.Role != RoleOperator && t.Role != RoleSession:
		return fmt.Errorf("the role must be one of %s, %s, %s", RoleAgent, RoleOperator, RoleSession)
	case t.Role == RoleSession && (events.Address{Tenant: t.Tenant, Session: t.Session}).Validate() != nil:
		return errors.New("a session is named as tenant/session, with the id that sessions lists")
	case t.Role == RoleOperator && t.Tenant != AnyTenant:
		return fmt.Errorf("the tenant of an operator must be %s: it is for all", AnyTenant)
	case t.Role == RoleAgent && !events.ValidID(t.Tenant):
		return errors.New("the tenant is not 1 to 64 of A-Z a-z 0-9 _ -")
	}
	return nil
}

// line is a token as the file has it.
func (t *Token) line() string {
	of := t.Tenant
	if t.Role == RoleSession {
		of += "/" + t.Session
	}
	out := fmt.Sprintf("%s %s %s", t.Hash, of, t.Role)
	if !t.Expires.IsZero() {
		out += " " + t.Expires.UTC().Format(time.RFC3339)
	}
	return out
}
