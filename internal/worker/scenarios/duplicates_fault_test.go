//go:build faults

package scenarios_test

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
	"compactd/internal/events/codec"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// P3: turns that overtake each other or are published again, within the server's duplicate
// window and after it, are applied once and in order.
func TestFaultDuplicates(t *testing.T) {
	t.Parallel()
	const sessions, turns = 30, 60
	env := workertest.New(t, t.TempDir())
	rememberIDs(env, 100*time.Millisecond)
	stop := env.Run("a", observe.Listener{})
	d := disorder{Env: env, rnd: rand.New(rand.NewPCG(3, 1))}
	for n := 1; n <= turns; n++ {
		for s := range sessions {
			d.publishTurn(s, n)
		}
	}
	for s := range sessions {
		d.release(s)
		d.republishLater(s, turns/2)
	}
	env.AwaitDecided()
	o := originals{Env: env}
	missing, twice := 0, 0
	for s := range sessions {
		var want []codec.Raw
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
	stop()
	env.WantRedecided()
	figures.Print(t, "P3", "sessions", sessions, "turns", sessions*turns, "offered", d.offered, "duplicates", d.duplicates,
		"after_window", d.duplicates-d.dropped, "reordered", d.reordered, "applied_twice", twice, "missing", missing, "out_of_order", o.different)
}

// rememberIDs sets the duplicate window of the log.
func rememberIDs(env *workertest.Env, window time.Duration) {
	env.T.Helper()
	s, err := env.JS.Stream(env.T.Context(), topology.LogStream)
	if err != nil {
		env.T.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.Duplicates = window
	if _, err := env.JS.UpdateStream(env.T.Context(), c); err != nil {
		env.T.Fatal(err)
	}
}

// disorder publishes turns late, twice and in another order, and counts them.
type disorder struct {
	*workertest.Env
	rnd  *rand.Rand
	held map[int]int // the late turn of a session

	offered, duplicates, dropped, reordered int
}

// publishTurn publishes a turn: now, or after the next one, or twice.
func (d *disorder) publishTurn(session, n int) {
	d.T.Helper()
	switch r := d.rnd.IntN(100); {
	case r < 8 && d.held[session] == 0:
		if d.held == nil {
			d.held = map[int]int{}
		}
		d.held[session] = n
		return
	case r < 11:
		d.send(session, n)
		d.republish(session, n)
	default:
		d.send(session, n)
	}
	if d.rnd.IntN(2) == 0 {
		d.release(session)
	}
}

// release publishes the turn that is late.
func (d *disorder) release(session int) {
	d.T.Helper()
	if n := d.held[session]; n > 0 {
		delete(d.held, session)
		d.reordered++
		d.send(session, n)
	}
}

func (d *disorder) republish(session, n int) {
	d.T.Helper()
	d.duplicates++
	if d.send(session, n).Duplicate {
		d.dropped++
	}
}

// republishLater publishes a turn again until the duplicate window is over and the server
// stores it.
func (d *disorder) republishLater(session, n int) {
	d.T.Helper()
	workertest.Until(d.T, "the duplicate window is over", func() bool {
		before := d.dropped
		d.republish(session, n)
		return d.dropped == before
	})
}

func (d *disorder) send(session, n int) *jetstream.PubAck {
	d.T.Helper()
	d.offered++
	subject := events.Published(events.KindTurn, events.Address{Tenant: "default", Session: fmt.Sprintf("s%d", session)})
	m := &nats.Msg{Subject: subject, Data: agentTurn(session, n), Header: nats.Header{nats.MsgIdHdr: {fmt.Sprintf("s%d-%d", session, n)}}}
	a, err := d.JS.PublishMsg(context.WithoutCancel(d.T.Context()), m)
	if err != nil {
		d.T.Fatal(err)
	}
	return a
}
