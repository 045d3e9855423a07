package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
)

// slowLog is a log of which the test answers the reads, one by one.
type slowLog struct {
	t        *testing.T
	texts    *Texts
	requests chan *nats.Msg
	readers  sync.WaitGroup
}

func newSlowLog(t *testing.T) *slowLog {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	open := func() *nats.Conn {
		nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	l := &slowLog{t: t, texts: NewTexts(open()), requests: make(chan *nats.Msg, 1<<16)}
	l.texts.pause = time.Hour // or a slow test gets other requests
	nc := open()
	if _, err := nc.ChanSubscribe(subjectDirectGet+topology.LogStream, l.requests); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return l
}

// read reads in a goroutine of its own, and returns once so many callers have something to
// request.
func (l *slowLog) read(ctx context.Context, seqs []uint64, waiting int) {
	l.t.Helper()
	l.readers.Go(func() {
		got, err := l.texts.Get(ctx, seqs)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				l.t.Error(err)
			}
			return
		}
		for i, m := range got {
			if m.Seq != seqs[i] || string(m.Data) != fmt.Sprint(seqs[i]) {
				l.t.Errorf("requested %d, got %+v", seqs[i], m)
			}
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l.texts.mu.Lock()
		n := len(l.texts.callers)
		l.texts.mu.Unlock()
		if n == waiting {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("%d callers wait, not %d", n, waiting)
		}
	}
}

// answer answers until everyone has what it reads, and returns what was requested, in order.
func (l *slowLog) answer() (seqs []uint64) {
	done := make(chan struct{})
	go func() { l.readers.Wait(); close(done) }()
	for {
		select {
		case m := <-l.requests:
			var in struct{ Seq uint64 }
			if err := json.Unmarshal(m.Data, &in); err != nil {
				l.t.Fatal(err)
			}
			out := nats.NewMsg(m.Reply)
			out.Data = []byte(fmt.Sprint(in.Seq))
			for name, value := range map[string]string{
				"Nats-Stream": topology.LogStream, headerSubject: "log.0.turn.t.s", headerSequence: fmt.Sprint(in.Seq), headerTimestamp: time.Now().UTC().Format(time.RFC3339Nano),
			} {
				out.Header[name] = []string{value}
			}
			if err := m.RespondMsg(out); err != nil {
				l.t.Fatal(err)
			}
			seqs = append(seqs, in.Seq)
		case <-done:
			return seqs
		}
	}
}

// loads is how many blocks a server reads for requests in this order, when it keeps one.
func loads(seqs []uint64, perBlock uint64) (n int) {
	for i, seq := range seqs {
		if i == 0 || (seq-1)/perBlock != (seqs[i-1]-1)/perBlock {
			n++
		}
	}
	return n
}

// The turns of forty sessions are interleaved, a round in each block. A caller that reads a session
// alone makes the server read every block; together they need little more than that once.
func TestSweep(t *testing.T) {
	t.Parallel()
	const sessions, rounds = 40, 30
	l, alone := newSlowLog(t), 0
	for s := range uint64(sessions) {
		var seqs []uint64
		for r := range uint64(rounds) {
			seqs = append(seqs, r*sessions+s+1)
		}
		alone += loads(seqs, sessions)
		l.read(t.Context(), seqs, int(s)+1)
	}
	order := l.answer()
	if got := slices.Compact(slices.Sorted(slices.Values(order))); len(got) != sessions*rounds || len(order) != len(got) {
		t.Fatalf("%d requests for %d events, want %d", len(order), len(got), sessions*rounds)
	}
	together := loads(order, sessions)
	t.Logf("%d blocks alone, %d together", alone, together)
	if together*20 > alone {
		t.Errorf("%d blocks are read instead of %d: %v", together, alone, order)
	}
}

// A sweep ends where it ended when it began: who joins behind that, over and over, does not
// keep one waiting who wants what the sweep has passed.
func TestSweepEnds(t *testing.T) {
	t.Parallel()
	l := newSlowLog(t)
	var seqs []uint64
	for seq := uint64(101); seq <= 120; seq++ {
		seqs = append(seqs, seq)
	}
	l.read(t.Context(), seqs, 1) // requests the first few
	l.read(t.Context(), []uint64{1}, 2)
	for n := range uint64(10) {
		l.read(t.Context(), []uint64{201 + n, 110 + n}, int(n)+3)
	}
	order := l.answer()
	at := func(seq uint64) int { return slices.Index(order, seq) }
	if at(1) < at(120) || at(1) > at(201) || !slices.IsSorted(order[at(1):]) {
		t.Errorf("requested %v", order)
	}
}

// A text that a caller was fetching when it was stopped is for the others.
func TestSweepStopped(t *testing.T) {
	t.Parallel()
	l := newSlowLog(t)
	var seqs []uint64
	for seq := uint64(1); seq <= 3*firstInFlight; seq++ {
		seqs = append(seqs, seq)
	}
	ctx, stop := context.WithCancel(t.Context())
	l.read(ctx, seqs, 1)
	l.read(t.Context(), []uint64{500}, 2)
	stop()
	if order := l.answer(); order[len(order)-1] != 500 {
		t.Errorf("requested %v", order)
	}
}

// Groups are read whole, as many from the first on as fit, and the first alone if it does not.
// A group that the log does not hold whole is left out.
func TestGetGroups(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	text := strings.Repeat("x", 1000)
	var groups [][]uint64
	for g := range 10 {
		groups = append(groups, nil)
		for range 4 {
			groups[g] = append(groups[g], w.Turn(fmt.Sprint("s", g), text))
		}
	}
	whole := 4 * (len(text) + heldMessage)
	texts := NewTexts(w.NC)
	for _, test := range []struct{ limit, want int }{{10 * whole, 10}, {5*whole + 1, 5}, {whole - 1, 1}, {0, 1}} {
		got, err := texts.GetGroups(brokertest.Within(t, time.Minute), groups, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		n, bytes := 0, 0
		for g, all := range got {
			if all == nil {
				continue
			}
			n++
			for i, m := range all {
				if bytes += len(m.Data) + heldMessage; m.Seq != groups[g][i] || string(m.Data) != text {
					t.Errorf("limit %d: group %d has %d at %d", test.limit, g, m.Seq, i)
				}
			}
		}
		if n != test.want || got[0] == nil || bytes > max(test.limit, whole) {
			t.Errorf("limit %d: %d groups of %d bytes, want %d", test.limit, n, bytes, test.want)
		}
	}
	groups[3][2] = 1 << 40
	got, err := texts.GetGroups(brokertest.Within(t, time.Minute), groups, 10*whole)
	if err != nil || got[3] != nil || got[2] == nil || got[4] == nil {
		t.Errorf("%v, with one that is gone: %v", err, got)
	}
}
