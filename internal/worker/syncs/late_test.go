package syncs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"compactd/internal/align"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// lateRequest is a sync of a history of so many messages, behind a late one that published the messages from to until
// as turns of one message each.
func lateRequest(h Sessions, length, from, until int, replaces bool) (*request, *state) {
	raws := make([]codec.Raw, length)
	for i := range raws {
		raws[i] = codec.Raw(fmt.Sprintf(`{"role":"user","content":"message %d"}`, i))
	}
	a := events.Address{Tenant: "t", Session: "s"}
	r := &request{Syncer: New(h, Config{}), in: &events.SyncRequest{}, address: a, format: events.OpenAI, history: align.Read(events.OpenAI, raws, 0), until: length}
	st, whole, sent := &state{}, events.Digest{}, undecided{replaces: replaces, settings: "set"}
	for i := range until {
		raw := codec.Raw(fmt.Sprintf(`{"role":"user","content":"message %d"}`, i))
		digest := events.OpenAI.DigestOf([]codec.Raw{raw})
		whole = whole.With(digest, 1)
		if i < from {
			st.chain = append(st.chain, events.Link{Whole: whole})
			continue
		}
		sent.turns = append(sent.turns, syncedTurn{seq: uint64(10 + i), number: int64(i + 1), whole: whole, digest: digest, messages: 1})
	}
	sent.base = st.base()
	r.late.note(a, sent, true)
	return r, st
}

// A sync begins behind the turns of a late one that its history goes on with, as far as the ledger lacks them.
func TestFollow(t *testing.T) {
	const from, until = 2, 4
	for name, c := range map[string]struct {
		length, decided int
		replaces        bool
		t               unpublished
		at, turns       int
		settings        string
		err             error
	}{
		"goes on":               {length: 6, t: unpublished{at: from}, at: until, turns: 2, settings: "set"},
		"is the same":           {length: 4, t: unpublished{at: from}, at: until, turns: 2, settings: "set"},
		"one turn is decided":   {length: 6, decided: 1, t: unpublished{at: from + 1}, at: until, turns: 1},
		"all are decided":       {length: 6, decided: 2, t: unpublished{at: until}, at: until},
		"ends before them":      {length: 3, t: unpublished{at: from}, err: errUndecided},
		"differs":               {length: 6, t: unpublished{at: from + 1}, err: errUndecided},
		"replaces turns":        {length: 6, t: unpublished{from: 1, at: from}, err: errUndecided},
		"the late one replaced": {length: 6, replaces: true, t: unpublished{at: from}, err: errUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			r, st := lateRequest(nil, c.length, from, until, c.replaces)
			turns := r.late.all[r.address].turns
			for i := range c.decided {
				st.chain = append(st.chain, events.Link{Whole: turns[i].whole})
			}
			u, at, err := r.follow(st, c.t)
			if !errors.Is(err, c.err) {
				t.Fatalf("the error is %v, not %v", err, c.err)
			}
			if err == nil && (at != c.at || len(u.turns) != c.turns || u.base != st.base() || u.settings != c.settings) {
				t.Errorf("it begins at %d behind %+v", at, u)
			}
		})
	}
}

// decidedSessions answers with err whether an event is decided.
type decidedSessions struct {
	Sessions
	err    error
	waited []events.Await
}

func (h *decidedSessions) Inspect(_ context.Context, _ events.Address, after events.Await, _ func(*compaction.Ledger)) (func(context.Context) error, error) {
	h.waited = append(h.waited, after)
	return nil, h.err
}

// A sync behind a late one waits for the last turn of that, longer than its own wait where that is short.
func TestAwaitLate(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		err, want error
		dry       bool
		waited    int
		kept      bool
	}{
		"decided":     {waited: 1},
		"undecided":   {err: events.NewInvalid(events.CodeTurnPending, "", "late"), waited: 1, kept: true},
		"not to know": {err: down, want: down, waited: 1, kept: true},
		"a dry run":   {dry: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &decidedSessions{err: c.err}
			r, _ := lateRequest(h, 4, 2, 4, false)
			r.deadline, r.in.DryRun = time.Now(), c.dry
			if err := r.awaitLate(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("the error is %v", err)
			}
			if len(h.waited) != c.waited || c.waited == 1 && (h.waited[0].Seq != 13 || *h.waited[0].WaitMS != syncWait.Milliseconds()) {
				t.Errorf("it waits for %+v", h.waited)
			}
			if kept := r.late.last(r.address) != 0; kept != c.kept {
				t.Errorf("the turns are kept: %v", kept)
			}
		})
	}
}
