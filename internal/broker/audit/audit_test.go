package audit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/brokertest"
	"compactd/internal/events"
)

// A caller that leaves before its entry is stored does not keep out the entries of others.
func TestCallerLeaves(t *testing.T) {
	env := brokertest.New(t)
	l := audit.New(env.JS)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Record(gone, events.AuditEntry{Action: "token_minted", Tenant: "a"}, ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if err := l.Record(t.Context(), events.AuditEntry{Action: "context", Tenant: "b"}, ""); err != nil {
		t.Error(err)
	}
}

// Whatever name a publisher claims, its entry is small: large ones would push out those of others.
func TestClaimedNames(t *testing.T) {
	env := brokertest.New(t)
	l := audit.New(env.JS)
	for _, name := range []string{strings.Repeat("\x01", 60_000), strings.Repeat("\xff", 60_000), strings.Repeat("ü", 60_000), "x" + strings.Repeat("ü", 100)} {
		if err := l.Record(t.Context(), events.AuditEntry{Action: "rewind", Caller: name, From: name, Tenant: "a"}, ""); err != nil {
			t.Error(err)
		}
	}
	n := 0
	err := audit.Read(t.Context(), env.JS, audit.Selection{}, func(e events.AuditEntry) error {
		if n++; len(e.Caller) > 128 || len(e.From) > 128 || !utf8.ValidString(e.Caller) {
			t.Errorf("the caller has %d bytes, its address %d: %.20q", len(e.Caller), len(e.From), e.Caller)
		}
		return nil
	})
	if err != nil || n != 4 {
		t.Errorf("%d entries, %v", n, err)
	}
}
