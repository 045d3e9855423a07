package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Sync is a whole conversation as an agent holds it, with the prompt of its next call at the
// end. A zero field keeps the value from earlier calls.
type Sync struct {
	// Config is as for a session; OnCompaction and OnNote are not called.
	Config
	// Messages are values that marshal to those of the provider. The agent keeps them, and appends to them:
	// the result of Sync is for one call.
	Messages []any
	// Branch names a conversation of its own that began as a copy of this one, such as a sub-agent's.
	Branch string
	// Last is the result for the call before; nil for none. Usage is the provider's count for that call, a
	// value that marshals to its shape. Refusal, and Status, is its error if it refused the call as too long,
	// as for [Session.Overflow].
	Last    *Synced
	Usage   any
	Refusal any
	Status  int
	// OnDivergence is auto (the default), replace, branch or refuse: the treatment of messages that differ
	// from an earlier call's. See docs/format/wire.md.
	OnDivergence string
	// Wait is the most to wait for the decision about new messages. Default 500 ms.
	Wait time.Duration
	// DryRun: nothing is recorded.
	DryRun bool

	begins bool // the messages begin with those of Last, by content
}

// Synced has the messages to send with the next call.
type Synced struct {
	// Messages are the agent's own values if nothing changed them, and [encoding/json.RawMessage] if compactd
	// made or changed a message.
	Messages []any
	// Changed: they differ from the agent's.
	Changed    bool
	Generation int64
	// Code is [CodeBudgetExceeded] if no stage could make the history fit: after a refusal the same call
	// would be refused again.
	Code Code
	// Budget is of the call with these messages.
	Budget Budget
	// Session is the name of the branch with the conversation, "" if it is the request's. Branch is the name
	// for [Sync.Branch] of later calls of the conversation.
	Session string
	Branch  string
	// Warnings are codes with a text for people.
	Warnings []Note

	view  string
	of    int // messages of the conversation
	parts []events.SyncPart
	count int64
	hash  events.Digest
	known events.Digest // of the first count messages; zero if a whole history is small
}

// syncer sends syncs to a worker.
type syncer struct {
	most int // bytes of a request
	send func(ctx context.Context, session string, in *wireSync, out *events.SyncResponse) error
}

// Sync returns the messages of a conversation to send, and records the new ones. It needs no [Session], and
// no memory: any process may continue a conversation. It is not for a session that is published by turns at
// the same time.
func (c *Client) Sync(ctx context.Context, session string, in Sync) (*Synced, error) {
	s := syncer{int(c.nc.MaxPayload()), func(ctx context.Context, session string, in *wireSync, out *events.SyncResponse) error {
		id, err := events.SessionID(session)
		if err != nil {
			return typed(err)
		}
		in.V, in.Tenant, in.Session = events.Version, c.tenant, id
		return c.request(ctx, events.SubjectSync, in, out)
	}}
	return s.sync(ctx, session, in)
}

func (c *syncer) sync(ctx context.Context, session string, in Sync) (*Synced, error) {
	w, err := in.wire()
	if err != nil {
		return nil, err
	}
	messages := w.Messages
	out, err := c.exchange(ctx, session, w, &in)
	if err != nil {
		return nil, err
	}
	fits, err := in.apply(out)
	if err == nil && fits.count <= int64(len(messages)) && codec.Size(messages) > c.most/8 {
		fits.known = w.dialect().DigestOf(messages[:fits.count])
	}
	return fits, err
}

// wire is the request of a whole conversation.
func (s *Sync) wire() (*wireSync, error) {
	set, err := s.settings()
	if err != nil {
		return nil, err
	}
	w := &wireSync{Branch: s.Branch, settings: *set, OnDivergence: s.OnDivergence, WaitMS: s.Wait.Milliseconds(), DryRun: s.DryRun}
	if w.Messages, err = encodeAll(s.Messages); err != nil {
		return nil, err
	}
	if w.Messages == nil {
		w.Messages = []codec.Raw{}
	}
	if w.Usage, err = s.usage(); err != nil {
		return nil, err
	}
	if s.Refusal == nil && s.Status == 0 {
		return w, nil
	}
	w.Refused = &events.SyncRefused{Status: int64(s.Status)}
	if s.Last != nil {
		w.Refused.View = s.Last.view
	}
	w.Refused.Error, err = refusalOf(cmp.Or[any](s.Refusal, ""))
	return w, err
}

// wireSync is a request of compactd.sync.
type wireSync struct {
	V       int    `json:"v,omitzero"` // without tenant and session if the path names them
	Tenant  string `json:"tenant,omitzero"`
	Session string `json:"session,omitzero"`
	Branch  string `json:"branch,omitzero"`
	settings
	Prefix       *events.SyncPrefix  `json:"prefix,omitzero"`
	Messages     []codec.Raw         `json:"messages"`
	Usage        codec.Raw           `json:"usage,omitzero"`
	Refused      *events.SyncRefused `json:"refused,omitzero"`
	OnDivergence string              `json:"on_diverge,omitzero"`
	WaitMS       int64               `json:"wait_ms,omitzero"`
	DryRun       bool                `json:"dry_run,omitzero"`
}

// usage is the usage of the last call, with its view.
func (s *Sync) usage() (codec.Raw, error) {
	if s.Usage == nil || s.Last == nil {
		return nil, nil
	}
	raw, err := encode(s.Usage)
	if err == nil {
		raw, err = codec.Marshal(&events.SyncUsage{View: s.Last.view, Count: int64(s.Last.of), Raw: raw})
	}
	if err != nil {
		return nil, fmt.Errorf("encode usage: %w", err)
	}
	return raw, nil
}

// exchange sends the messages behind the last call, or the whole conversation.
func (c *syncer) exchange(ctx context.Context, session string, w *wireSync, in *Sync) (*events.SyncResponse, error) {
	all := w.Messages
	if c.hasPrefix(w, in) {
		w.Prefix = &events.SyncPrefix{Count: in.Last.count, Hash: in.Last.hash}
		w.Messages = all[in.Last.count:]
	}
	w.Messages = c.fold(w, w.Messages)
	out := &events.SyncResponse{}
	if err := c.send(ctx, session, w, out); err != nil {
		return nil, err
	}
	if out.Need == "" {
		return out, nil
	}
	w.Prefix, w.Messages = nil, c.fold(w, all)
	out = &events.SyncResponse{}
	return out, c.send(ctx, session, w, out)
}

// largeMessage is the size from which a worker may have media of a message only by their hash.
const largeMessage = 256 << 10

// hasPrefix reports whether the conversation begins with the content of the last call. If its caller has not
// compared them, it compares histories above the server's limit.
func (c *syncer) hasPrefix(w *wireSync, in *Sync) bool {
	last, all := in.Last, w.Messages
	if last == nil || last.count == 0 || last.count > int64(len(all)) {
		return false
	}
	isLarge := func(m codec.Raw) bool { return len(m) > largeMessage }
	if in.begins && last.Session == "" && !slices.ContainsFunc(all[:last.count], isLarge) { // a session lacks what its branches have
		return true
	}
	return codec.Size(all) > c.most/2 && last.known == w.dialect().DigestOf(all[:last.count])
}

// fold lists messages with references in place of the oldest media, if they exceed the server's limit of a
// request. The agent's own messages are sent by their index.
func (c *syncer) fold(w *wireSync, messages []codec.Raw) []codec.Raw {
	rest := len(w.System) + len(w.Tools) + len(w.Policy) + len(w.Usage)
	return w.dialect().Fold(messages, c.most*7/8-rest)
}

var errParts = errors.New("sync: the parts do not belong to the history")

// apply applies the parts of an answer to the messages of the agent.
func (s *Sync) apply(r *events.SyncResponse) (*Synced, error) {
	out := &Synced{
		Changed: r.Changed, Generation: r.Generation, Code: Code(r.Code), Budget: budget(r.Budget),
		view: r.View, of: len(s.Messages), count: r.Count, hash: r.Hash, parts: r.Parts,
	}
	if r.Session != "" {
		out.Session, out.Branch = events.SessionName(r.Session), r.Branch
	}
	for _, w := range r.Warnings {
		out.Warnings = append(out.Warnings, Note{Code: Code(w.Code), Message: w.Message, Hint: w.Hint})
	}
	var next int64
	for _, p := range r.Parts {
		for _, of := range []*events.SyncRange{p.Keep, p.Drop, p.StandsFor, at(p.Edit)} {
			if of == nil {
				continue
			}
			if of[0] != next || of[1] < next {
				return nil, errParts
			}
			next = of[1]
		}
	}
	if next != int64(len(s.Messages)) {
		return nil, errParts
	}
	out.Messages = []any{}
	for _, p := range out.extend(len(s.Messages)) {
		if p.message == nil {
			out.Messages = append(out.Messages, s.Messages[p.own])
		} else {
			out.Messages = append(out.Messages, json.RawMessage(p.message))
		}
	}
	return out, nil
}

// at is the range of an edited message.
func at(index *int64) *events.SyncRange {
	if index == nil {
		return nil
	}
	return &events.SyncRange{*index, *index + 1}
}
