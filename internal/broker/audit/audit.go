package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

const (
	recordIn = 2 * time.Second
	pause    = 10 * time.Second
	// mostName limits the name and the address of a caller, in bytes: a publisher over NATS claims any.
	mostName = 128
)

// Log records entries.
type Log struct {
	js     jetstream.JetStream
	failed atomic.Pointer[time.Time] // of the last failure: Record fails at once for a while after it
}

// New returns the audit log. Workers create its stream at their start, or with the first entry if there was no space
// then.
func New(js jetstream.JetStream) *Log { return &Log{js: js} }

var errFailed = errors.New("the last entry was not stored")

// Record stores an entry. id is "" for an entry that is never recorded again. After a failure of the server Record
// fails at once for a while, so that no caller waits for a server without permission or space.
func (l *Log) Record(ctx context.Context, e events.AuditEntry, id string) error {
	if !slices.Contains(events.AuditActions, e.Action) {
		return fmt.Errorf("record %s: the action is not in events.AuditActions", e.Action)
	}
	if at := l.failed.Load(); at != nil && time.Since(*at) < pause {
		return fmt.Errorf("record %s: %w", e.Action, errFailed)
	}
	err := l.record(ctx, e, id)
	if err != nil && ctx.Err() == nil { // else the caller has gone
		now := time.Now()
		l.failed.Store(&now)
	}
	return err
}

func (l *Log) record(ctx context.Context, e events.AuditEntry, id string) error {
	ctx, cancel := context.WithTimeout(ctx, recordIn)
	defer cancel()
	e.V, e.Tenant = events.Version, cmp.Or(e.Tenant, events.Unknown)
	e.Caller, e.From = bounded(e.Caller), bounded(e.From)
	data, err := codec.Marshal(e)
	if err != nil {
		return fmt.Errorf("record %s: %w", e.Action, err)
	}
	m := &nats.Msg{Subject: subject(e.Action, e.Tenant), Data: data, Header: nats.Header{}}
	if id != "" {
		m.Header.Set(nats.MsgIdHdr, id)
	}
	_, err = l.js.PublishMsg(ctx, m, jetstream.WithExpectStream(topology.AuditStream))
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if err = topology.EnsureAudit(ctx, l.js); err == nil {
			_, err = l.js.PublishMsg(ctx, m, jetstream.WithExpectStream(topology.AuditStream))
		}
	}
	return jsapi.Wrap(err, "record %s", e.Action)
}

// bounded cuts a name to mostName bytes.
func bounded(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), mostName)], "")
}

func subject(action, tenant string) string { return "audit." + action + "." + tenant }

// Selection selects entries. An empty field selects any.
type Selection struct {
	Action, Tenant string
	Since          time.Time
}

// Read calls fn with the selected entries, the oldest first.
func Read(ctx context.Context, js jetstream.JetStream, s Selection, fn func(events.AuditEntry) error) error {
	all := stream.Selection{Stream: topology.AuditStream, Filters: []string{subject(cmp.Or(s.Action, "*"), cmp.Or(s.Tenant, "*"))}}
	err := stream.Read(ctx, js, all, func(m jetstream.Msg, _ uint64) error {
		md, err := m.Metadata()
		if err != nil || md.Timestamp.Before(s.Since) {
			return err
		}
		var e events.AuditEntry
		if codec.Unmarshal(m.Data(), &e) != nil {
			return nil //nolint:nilerr // no worker wrote it
		}
		e.Time = md.Timestamp.UnixMilli()
		return fn(e)
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}
