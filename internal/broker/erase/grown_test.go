package erase

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// grown is a session whose events a log has under two partitions, as it grew in between, and whose outcomes both
// have published.
func grown(t *testing.T) (*env, events.Address) {
	t.Helper()
	w := newEnv(t)
	a := events.Address{Tenant: "t", Session: "s"}
	for i := 0; events.PartitionOf(a, 4) == events.PartitionOf(a, 8); i++ {
		a.Session = fmt.Sprint("s", i)
	}
	w.Turn(a.Session, "before")
	w.outcome(events.PartitionOf(a, 4), events.KindCompacted, a, 0)
	table, err := topology.Grow(t.Context(), w.JS)
	for p := range 4 {
		if err == nil {
			table, err = table.Split(p, 2)
		}
	}
	if err == nil {
		_, err = topology.Record(t.Context(), w.JS, table)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Turn(a.Session, "after")
	w.outcome(events.PartitionOf(a, 8), events.KindCompacted, a, 0)
	return w, a
}

// publish stores an event.
func (w *env) publish(k events.Kind, a events.Address, data string) uint64 {
	w.T.Helper()
	ack, err := w.JS.Publish(w.T.Context(), events.Published(k, a), []byte(data))
	if err != nil {
		w.T.Fatal(err)
	}
	return ack.Sequence
}

// outcome stores one as the first owner of a partition, the last that is there before it being at a sequence.
func (w *env) outcome(partition int, k events.Kind, a events.Address, last uint64) uint64 {
	w.T.Helper()
	return w.outcomeOf(0, partition, k, a, last)
}

// outcomeOf is outcome with the sequence of the event that caused it.
func (w *env) outcomeOf(seq uint64, partition int, k events.Kind, a events.Address, last uint64) uint64 {
	w.T.Helper()
	data := fmt.Appendf(nil, `{"v":1,"caused_by":{"seq":%d},"seq":%[1]d}`, seq)
	ack, err := w.JS.PublishMsg(w.T.Context(), &nats.Msg{Subject: events.Outcome(partition, k, a), Data: data, Header: nats.Header{
		jsapi.HeaderFence: {fmt.Sprint(last)}, jsapi.HeaderFenceSubject: {events.OutcomeFilter(partition)},
	}})
	if err != nil {
		w.T.Fatal(err)
	}
	return ack.Sequence
}

// held lists the sequences that a stream has under a filter.
func (w *env) held(name, filter string) (seqs []uint64) {
	w.T.Helper()
	if err := stream.ReadStream(w.T.Context(), w.JS, name, filter, 1, 0, func(_ jetstream.Msg, seq uint64) error {
		seqs = append(seqs, seq)
		return nil
	}); err != nil {
		w.T.Fatal(err)
	}
	return seqs
}

// An erasure overwrites what a session has under each partition that it was in.
func TestEraseGrown(t *testing.T) {
	t.Parallel()
	w, a := grown(t)
	other := events.Address{Tenant: a.Tenant, Session: a.Session + "x"}
	kept := w.publish(events.KindTurn, other, "of another session")
	seq := w.publish(events.KindForget, a, `{"v":1,"id":"f"}`)
	answer := w.outcome(events.PartitionOf(a, 8), events.KindForgotten, a, 2)
	outcomes, log, err := Erase(t.Context(), w.JS, Erasure{Forgotten: events.Forgotten{Seq: seq}, Address: a})
	if err != nil || outcomes != 2 || log != 2 {
		t.Errorf("erased %d outcomes and %d events: %v", outcomes, log, err)
	}
	if diff := cmp.Diff([]uint64{kept, seq}, w.held(topology.LogStream, "log.>")); diff != "" {
		t.Errorf("left in the log: %s", diff)
	}
	if diff := cmp.Diff([]uint64{answer}, w.held(topology.OutcomesStream, "out.>")); diff != "" {
		t.Errorf("left of outcomes: %s", diff)
	}
}

// No summary follows the erasure of its session: not where a session.forget came under the subject of another partition
// than the job is of, and where both came at once, the session is erased once more.
func TestSummaryOfGrown(t *testing.T) {
	t.Parallel()
	w, a := grown(t)
	parent := events.PartitionOf(a, 4)
	since, err := LastForgetOf(t.Context(), w.NC, a)
	if err != nil || since != 0 {
		t.Fatalf("a session.forget at %d: %v", since, err)
	}
	publish := func(job string, since uint64) error {
		m := &nats.Msg{Subject: events.Published(events.KindSummary, a), Data: []byte(`{"v":1,"id":"` + job + `","job":"` + job + `","text":"t"}`), Header: nats.Header{nats.MsgIdHdr: {job}}}
		_, err := PublishUnlessErased(t.Context(), w.JS, m, parent, a, since)
		return err
	}
	if err := errors.Join(publish("i", since), Repeat(t.Context(), w.JS, a, "i", since)); err != nil {
		t.Fatal(err)
	}
	first := w.publish(events.KindForget, a, `{"v":1,"id":"f"}`)
	if err := publish("j", since); !errors.Is(err, ErrErased) {
		t.Errorf("published behind a session.forget: %v", err)
	}
	if err := publish("j", first); err != nil { // as one that was on its way with the session.forget
		t.Fatal(err)
	}
	for _, c := range []struct {
		job    string
		since  uint64
		want   error
		stored int // session.forget
	}{
		{"j", first, nil, 1},       // of a session that began again
		{"k", since, ErrErased, 1}, // it is not stored
		{"i", since, ErrErased, 1}, // it is before the session.forget
		{"j", since, ErrErased, 2}, // it is behind
		{"j", since, ErrErased, 2}, // and now before the second one
	} {
		err := Repeat(t.Context(), w.JS, a, c.job, c.since)
		if got := w.held(topology.LogStream, events.LoggedAnywhere(events.KindForget, a)); !errors.Is(err, c.want) || len(got) != c.stored {
			t.Errorf("job %s since %d: %v, and session.forget at %v", c.job, c.since, err, got)
		}
	}
}

// An erasure leaves the outcome that has the newest marker of another partition until that partition has stored a later
// one: its owner, and those that it is split into, continue from there.
func TestEraseNewest(t *testing.T) {
	t.Parallel()
	w, a := grown(t)
	parent := events.PartitionOf(a, 4)
	c, _, err := commit.TakeOver(t.Context(), w.NC, commit.Claim{Partition: parent, Owner: "o"})
	if err != nil {
		t.Fatal(err)
	}
	store := func(cursor uint64, k events.Kind) commit.Stored {
		t.Helper()
		var all []commit.Message
		if k != "" {
			all = append(all, commit.Message{Subject: events.Outcome(parent, k, a), Data: []byte(`{"v":1}`)})
		}
		if err := c.Commit(t.Context(), all, commit.Marker{Cursor: cursor}); err != nil {
			t.Fatal(err)
		}
		m, err := commit.LastMarker(t.Context(), w.NC, parent)
		if err != nil || m.Cursor != cursor {
			t.Fatalf("the marker is %+v, %v", m, err)
		}
		return m
	}
	store(1, events.KindCompacted)
	newest := store(2, events.KindErased)
	seq := w.publish(events.KindForget, a, `{"v":1,"id":"f"}`)
	w.outcome(events.PartitionOf(a, 8), events.KindForgotten, a, 2)
	erase := func() (int64, int64, error) {
		return Erase(t.Context(), w.JS, Erasure{Forgotten: events.Forgotten{Seq: seq}, Address: a})
	}
	outcomes, log, err := erase()
	if !errors.Is(err, ErrNewest) || outcomes != 3 || log != 2 {
		t.Errorf("erased %d outcomes and %d events: %v", outcomes, log, err)
	}
	if m, err := commit.LastMarker(t.Context(), w.NC, parent); err != nil || m.Seq != newest.Seq {
		t.Errorf("the marker is %+v, %v", m, err)
	}
	store(3, "")
	if outcomes, log, err := erase(); err != nil || outcomes != 1 || log != 0 {
		t.Errorf("erased %d outcomes and %d events: %v", outcomes, log, err)
	}
	if left := w.held(topology.OutcomesStream, events.Outcome(parent, events.KindErased, a)); len(left) > 0 {
		t.Errorf("left of outcomes: %v", left)
	}
}
