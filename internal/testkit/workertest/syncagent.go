package workertest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// SyncAgent is an agent that holds a history of its own, and applies parts to it for each call.
type SyncAgent struct {
	T       testing.TB
	Env     *Env
	Session string
	History []codec.Raw
	Last    events.SyncResponse
	Sent    []codec.Raw // with the last call
}

// Add adds a message of text.
func (a *SyncAgent) Add(role, text string) {
	m, err := json.Marshal(map[string]any{"role": role, "content": text, "x_native": len(a.History)})
	if err != nil {
		a.T.Fatal(err)
	}
	a.History = append(a.History, m)
}

// Call adds a tool call and its result of some size.
func (a *SyncAgent) Call(n, size int) {
	a.History = append(a.History,
		codec.Raw(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"f%d.go\"}"}}]}`, n, n)),
		codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, n, strings.Repeat(fmt.Sprintf("line %d of the file. ", n), size))))
}

// Work lets the agent call a tool in each of some steps, and syncs behind each.
func (a *SyncAgent) Work(steps int) {
	a.T.Helper()
	if len(a.History) == 0 {
		a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
	}
	for range steps {
		a.Call(len(a.History), 60)
		a.Sync(0, "")
	}
}

// Holder is the session that has the history after a sync.
func (a *SyncAgent) Holder() string { return cmp.Or(a.Last.Session, a.Session) }

// WantHeld checks that the last answer is inside the window, and that its session has the history once.
func (a *SyncAgent) WantHeld() {
	a.T.Helper()
	if !a.Last.Budget.WithinBudget {
		a.T.Errorf("%+v", a.Last.Budget)
	}
	a.Env.WantLineage(a.Holder(), a.History[align.Read(events.OpenAI, a.History, 0).Lead:])
}

// Request sends a sync with more fields, of the messages from an index on.
func (a *SyncAgent) Request(from int, more string) (events.SyncResponse, *events.ServiceError) {
	a.T.Helper()
	messages, err := codec.Marshal(a.History[from:])
	if err != nil {
		a.T.Fatal(err)
	}
	in := fmt.Sprintf(`{"session":%q,"model":{"provider":"openai","name":"gpt-4","context_window":4000,"max_output_tokens":500},"wait_ms":8000,"messages":%s%s}`, a.Session, messages, more)
	var out events.SyncResponse
	reply := a.Deliver([]byte(in))
	if reply.Header.Get("Nats-Service-Error-Code") != "" {
		bad := &events.ServiceError{}
		if err := codec.Unmarshal(reply.Data, bad); err != nil {
			a.T.Fatal(err)
		}
		return out, bad
	}
	if err := codec.Unmarshal(reply.Data, &out); err != nil {
		a.T.Fatal(err)
	}
	return out, nil
}

// Deliver sends a request until a worker answers it: none may be there, or hold the partition.
func (a *SyncAgent) Deliver(in []byte) *nats.Msg {
	a.T.Helper()
	for end := time.Now().Add(WaitLimit); ; time.Sleep(20 * time.Millisecond) {
		reply, err := a.Env.Conn.Request(events.SubjectSync, in, WaitLimit)
		away := errors.Is(err, nats.ErrNoResponders) || err == nil && reply.Header.Get("Nats-Service-Error-Code") == string(events.CodeUnavailable)
		if err != nil && !away || time.Now().After(end) {
			a.T.Fatal(err)
		}
		if !away {
			return reply
		}
	}
}

// Sync sends the history, checks the parts, and applies them.
func (a *SyncAgent) Sync(from int, more string) {
	a.T.Helper()
	out, bad := a.Request(from, more)
	if bad != nil {
		a.T.Fatalf("sync: %+v", bad)
	}
	if out.Need != "" {
		a.Sync(0, "")
		return
	}
	at := int64(0)
	for _, p := range out.Parts {
		var r events.SyncRange
		switch {
		case p.Keep != nil:
			r = *p.Keep
		case p.Drop != nil:
			r = *p.Drop
		case p.Edit != nil:
			r = events.SyncRange{*p.Edit, *p.Edit + 1}
		default:
			r = *p.StandsFor
		}
		if r[0] != at || r[1] < r[0] {
			a.T.Fatalf("range %v does not begin at %d: %+v", r, at, out.Parts)
		}
		at = r[1]
	}
	if at != int64(len(a.History)) {
		a.T.Fatalf("parts end at %d of %d messages", at, len(a.History))
	}
	a.Last, a.Sent = out, align.Apply(a.History, out.Parts)
}

// WantContext compares what is sent with what context gives.
func (a *SyncAgent) WantContext() {
	a.T.Helper()
	want := a.Env.ContextMessages(a.Session)
	lead := align.Read(events.OpenAI, a.Sent, 0).Lead
	if events.OpenAI.DigestOf(want) != events.OpenAI.DigestOf(a.Sent[lead:]) {
		a.T.Fatalf("parts give %d messages, context %d:\n%s\n%s", len(a.Sent)-lead, len(want), a.Sent, want)
	}
}
