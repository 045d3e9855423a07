//go:build faults

package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/worker"
)

// P3: agents whose turns overtake each other, and that say turns again, within the
// server's memory of ids and after it, are heard once, in order.
func TestFaultDuplicates(t *testing.T) {
	t.Parallel()
	const sessions, turns = 30, 60
	w := newWorld(t, t.TempDir())
	w.rememberIDs(100 * time.Millisecond)
	stop := w.run("a", worker.Listener{})
	d := disorder{world: w, rnd: rand.New(rand.NewPCG(3, 1))}
	for n := 1; n <= turns; n++ {
		for s := range sessions {
			d.speak(s, n)
		}
	}
	for s := range sessions {
		d.release(s)
		d.muchLater(s, turns/2)
	}
	w.settle()
	o := originals{world: w}
	missing, twice := 0, 0
	for s := range sessions {
		var want []events.Raw
		for n := 1; n <= turns; n++ {
			turn, err := events.DecodeTurn(agentTurn(s, n))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, turn.Messages...)
		}
		got := o.historyOf(fmt.Sprintf("s%d", s), `,"generation":0`)
		o.same(fmt.Sprintf("session %d", s), want, got)
		missing, twice = missing+max(0, len(want)-len(got)), twice+max(0, len(got)-len(want))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantAsLogSays()
	figures.Print(t, "P3", "sessions", sessions, "turns", sessions*turns, "offered", d.offered, "duplicates", d.duplicates,
		"after_window", d.duplicates-d.dropped, "reordered", d.reordered, "applied_twice", twice, "missing", missing, "out_of_order", o.different)
}

// rememberIDs sets how long the server keeps the ids of messages.
func (w *world) rememberIDs(window time.Duration) {
	w.t.Helper()
	s, err := w.js.Stream(w.t.Context(), topology.LogStream)
	if err != nil {
		w.t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.Duplicates = window
	if _, err := w.js.UpdateStream(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

// disorder is what happens between agents and the log.
type disorder struct {
	*world
	rnd  *rand.Rand
	held map[int]int // a turn of a session that is late

	offered, duplicates, dropped, reordered int
}

// speak publishes a turn: now, or after the next one, or twice.
func (d *disorder) speak(session, n int) {
	d.t.Helper()
	switch r := d.rnd.IntN(100); {
	case r < 8 && d.held[session] == 0:
		if d.held == nil {
			d.held = map[int]int{}
		}
		d.held[session] = n
		return
	case r < 11:
		d.offer(session, n)
		d.again(session, n)
	default:
		d.offer(session, n)
	}
	if d.rnd.IntN(2) == 0 {
		d.release(session)
	}
}

// release publishes the turn that is late.
func (d *disorder) release(session int) {
	d.t.Helper()
	if n := d.held[session]; n > 0 {
		delete(d.held, session)
		d.reordered++
		d.offer(session, n)
	}
}

func (d *disorder) again(session, n int) {
	d.t.Helper()
	d.duplicates++
	if d.offer(session, n).Duplicate {
		d.dropped++
	}
}

// muchLater says a turn again until the server has forgotten its id, and takes it.
func (d *disorder) muchLater(session, n int) {
	d.t.Helper()
	until(d.t, "the id is forgotten", func() bool {
		before := d.dropped
		d.again(session, n)
		return d.dropped == before
	})
}

func (d *disorder) offer(session, n int) *jetstream.PubAck {
	d.t.Helper()
	d.offered++
	subject := events.Published(events.KindTurn, events.Address{Tenant: "default", Session: fmt.Sprintf("s%d", session)})
	m := &nats.Msg{Subject: subject, Data: agentTurn(session, n), Header: nats.Header{nats.MsgIdHdr: {fmt.Sprintf("s%d-%d", session, n)}}}
	a, err := d.js.PublishMsg(context.WithoutCancel(d.t.Context()), m)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}
