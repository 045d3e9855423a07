package agents

import (
	"cmp"
	"context"
	"crypto/subtle"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/time/rate"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/tokens"
)

// token is an entry of the tokens file, or the token of a session.
type token struct {
	tokens.Token
	part string        // of its tenant, for the limiter
	rate *rate.Limiter // of its requests; kept while the token is in the file
}

// name returns the name of the token in the audit log, with the id of worker token list.
func (t *token) name() string { return "token " + t.Hash.String()[:12] }

// tokenSet holds the tokens of one state of the file.
type tokenSet struct {
	byHash map[tokens.Hash]*token
	state  fileState
}

// fileState is compared to detect a change of a file.
type fileState struct {
	changed time.Time
	size    int64
}

// find returns the token of a request, or nil. The time of the search depends only on the hash, which no
// client can choose; the comparison takes constant time.
func (t *tokenSet) find(key []byte, secret string, now time.Time) *token {
	h := tokens.HashOf(secret)
	found := cmp.Or(t.byHash[h], noToken)
	if subtle.ConstantTimeCompare(found.Hash[:], h[:]) == 0 {
		return t.signed(key, secret, now)
	}
	if !found.Valid(now) {
		return nil
	}
	return found
}

// signed returns the token of a session that was signed for a valid token of the file, or nil. The two share a
// part and a rate.
func (t *tokenSet) signed(key []byte, secret string, now time.Time) *token {
	own, of, err := tokens.Open(key, secret)
	if err != nil || !own.Valid(now) {
		return nil
	}
	from := t.byHash[of]
	if from == nil || !from.Valid(now) || from.Role == tokens.RoleSession || !from.MayUse(own.Tenant) {
		return nil
	}
	return &token{Token: own, part: from.part, rate: from.rate}
}

// noToken is compared if no token has the hash. No text is known with the hash 0.
var noToken = &token{}

// readTokens reads the file. Tokens in before keep their rate.
func readTokens(path string, perSecond, burst int, before *tokenSet) (*tokenSet, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	all, err := tokens.Read(path)
	if err != nil {
		return nil, err
	}
	out := &tokenSet{byHash: map[tokens.Hash]*token{}, state: stateOf(info)}
	for _, t := range all {
		limit := rate.NewLimiter(rate.Limit(perSecond), burst)
		if before != nil && before.byHash[t.Hash] != nil {
			limit = before.byHash[t.Hash].rate
		}
		out.byHash[t.Hash] = &token{Token: t, part: t.Hash.String(), rate: limit}
	}
	return out, nil
}

func stateOf(info fs.FileInfo) fileState { return fileState{info.ModTime(), info.Size()} }

// reload reads the file again if it has changed, or always. If it cannot be read, the earlier tokens
// stay in force.
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
	e.changes = append(e.changes, change{before, now})
	retry.Wake(e.changed)
	return nil
}

// change is a change of the file.
type change struct{ before, now *tokenSet }

// recordChanges puts the changes of the file into the audit log until ctx ends. The next change is read meanwhile:
// it may revoke a token. All workers read the file; one entry is stored.
func (e *Edge) recordChanges(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-e.changed:
		}
		e.reloading.Lock()
		all := e.changes
		e.changes = nil
		e.reloading.Unlock()
		for _, c := range all {
			e.recordMissing(ctx, "token_made", c.now, c.before)
			e.recordMissing(ctx, "token_revoked", c.before, c.now)
		}
	}
}

// recordMissing records the tokens of a set that another set lacks.
func (e *Edge) recordMissing(ctx context.Context, what string, of, other *tokenSet) {
	for h, t := range of.byHash {
		if other.byHash[h] == nil && ctx.Err() == nil {
			entry := events.AuditEntry{Action: what, Caller: "tokens file", Tenant: t.Tenant, Session: t.Session, From: t.name()}
			_ = e.config.Service.Record(ctx, entry, what+"-"+t.Hash.String()) // Record reports its error
		}
	}
}
