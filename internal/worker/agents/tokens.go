package agents

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/time/rate"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/tokens"
)

// fileState is compared to detect a change of a file.
type fileState struct {
	changed time.Time
	size    int64
}

func stateOf(info fs.FileInfo) fileState { return fileState{info.ModTime(), info.Size()} }

// reload reads the file again if it has changed, or always. If it cannot be read, the earlier tokens
// stay in force. Tokens that stay keep their rate.
func (e *Edge) reload(always bool) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	info, err := os.Stat(e.config.Tokens)
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}
	if !always && stateOf(info) == e.state {
		return nil
	}
	all, err := tokens.Read(e.config.Tokens)
	if err != nil {
		return err
	}
	before, now := e.tokens.Load(), tokens.Set{}
	for _, t := range all {
		limit := rate.NewLimiter(rate.Limit(e.config.Rate), 2*e.config.Rate)
		if before != nil && (*before)[t.Hash] != nil {
			limit = (*before)[t.Hash].Rate
		}
		now[t.Hash] = &tokens.Entry{Token: t, Name: tokens.NameOf(t.Hash), Part: t.Hash.String(), Rate: limit}
	}
	e.state = stateOf(info)
	e.tokens.Store(&now)
	if before != nil {
		e.hub.revoke(now)
		e.changes = append(e.changes, change{*before, now})
		retry.Wake(e.changed)
	}
	return nil
}

// change is a change of the file.
type change struct{ before, now tokens.Set }

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
func (e *Edge) recordMissing(ctx context.Context, what string, of, other tokens.Set) {
	for h, t := range of {
		if other[h] == nil && ctx.Err() == nil {
			entry := events.AuditEntry{Action: what, Caller: "tokens file", Tenant: t.Tenant, Session: t.Session, From: t.Name}
			_ = e.config.Service.Record(ctx, entry, what+"-"+t.Hash.String()) // Record reports its error
		}
	}
}
