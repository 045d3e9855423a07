package partition

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
)

// requested collects the sequences that direct reads of the log request, in order.
func requested(t *testing.T, nc *nats.Conn) func() []uint64 {
	t.Helper()
	all := make(chan *nats.Msg, 1<<16)
	if _, err := nc.ChanSubscribe("$JS.API.DIRECT.GET."+topology.LogStream, all); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() (seqs []uint64) {
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		for len(all) > 0 {
			var in struct{ Seq uint64 }
			if err := json.Unmarshal((<-all).Data, &in); err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, in.Seq)
		}
		return seqs
	}
}

// blocks is how many blocks a server reads for requests in this order, when it keeps one and
// each has so many events.
func blocks(seqs []uint64, events uint64) (n int) {
	for i, seq := range seqs {
		if i == 0 || (seq-1)/events != (seqs[i-1]-1)/events {
			n++
		}
	}
	return n
}

// Forty sessions whose turns are interleaved, a round of all of them in each block of the log,
// reach their trigger in one round. Their texts are read together, as many as the bound of
// a commit holds, and the outcomes are those that each session alone would have.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	const sessions, rounds, textBytes = 40, 20, 1000
	env := brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})
	set := NewSet(env.JS, Config{Read: env.NC, Commit: env.NC, Texts: env.NC, Streams: env.Streams, Memory: 1 << 10, Limiter: limit.New(limit.Config{}), OutcomeBytes: -1, MaxAhead: 1 << 10})
	commits, _, err := commit.TakeOver(t.Context(), env.NC, commit.Claim{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	views := make([]*render.View, sessions)
	for r := range rounds {
		for s := range sessions {
			raw := fmt.Sprintf(`{"role":"user","content":"turn %d of %d: %s"}`, r+1, s, strings.Repeat("x", textBytes))
			seq := env.Turn(fmt.Sprint("s", s), `{"v":1,"messages":[`+raw+`]}`)
			m, err := events.OpenAI.Read(codec.Raw(raw))
			if err != nil {
				t.Fatal(err)
			}
			if views[s] == nil {
				views[s] = &render.View{Format: events.OpenAI}
			}
			views[s].Entries = append(views[s].Entries, measure.Measure(m, measure.Entry{Seq: measure.Seq(seq), Turn: uint32(r + 1)})...)
		}
	}
	read := requested(t, env.Connect(connect.Options{}))
	var queue []group
	var want [][]byte
	alone := 0
	for s, v := range views {
		a, o := events.Address{Tenant: "t", Session: fmt.Sprint("s", s)}, compaction.Outcome{Kind: events.KindCompacted, Body: &events.Compacted{Compacted: true}, View: v}
		data, omitted, err := set.Payloads.Outcome(t.Context(), nil, a, o, 1<<20)
		if err != nil || omitted != "" {
			t.Fatal(omitted, err)
		}
		want = append(want, data)
		alone += blocks(read(), sessions)
		queue = append(queue, group{outcomes: []emitted{{address: a, outcome: o}}, end: position{seq: measure.Seq(s + 1)}})
	}
	for s := range sessions {
		set.Payloads.Erase(events.Address{Tenant: "t", Session: fmt.Sprint("s", s)})
	}
	for name, share := range map[string]int{"all at once": sessions, "a quarter at once": sessions / 4, "none fits": 0} {
		t.Run(name, func(t *testing.T) {
			most := share * rounds * (textBytes + 400)
			c := &committer{scope: scope{0, set}, queue: newQueue(1<<10, 1<<30), allowance: most, commits: commits}
			for _, g := range queue {
				c.queue.add(g)
			}
			done, held := 0, 0
			var seqs []uint64
			for done < sessions {
				b, err := c.batch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i, m := range b.messages {
					if !bytes.Equal(m.Data, want[done+i]) {
						t.Fatalf("outcome %d is another one: %s, want %s", done+i, m.Data, want[done+i])
					}
				}
				held = max(held, c.ahead.Bytes())
				done += b.groups
				c.queue.remove(b.groups)
				seqs = append(seqs, read()...)
			}
			together := blocks(seqs, sessions)
			if c.ahead != nil {
				t.Error("texts are kept when nothing is queued")
			}
			if most = max(most, rounds*(textBytes+400)); held > most {
				t.Errorf("%d bytes are held, of %d", held, most)
			}
			if together*max(share, 1)*2 > alone*3 {
				t.Errorf("%d blocks are read, and %d by each session alone; %d share", together, alone, share)
			}
			t.Logf("%d blocks alone, %d together, %d bytes of %d held between commits", alone, together, held, most)
		})
	}
}

// enqueued is a context that calls waits when something waits for its end.
type enqueued struct {
	context.Context
	waits func()
}

func (e enqueued) Done() <-chan struct{} {
	e.waits()
	return e.Context.Done()
}

// An operation that reads the log has no processor meanwhile: a server that is slow would stop all others.
func TestReadingNeedsNoProcessor(t *testing.T) {
	t.Parallel()
	env := brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})
	l := limit.New(limit.Config{})
	set := NewSet(env.JS, Config{Read: env.NC, Commit: env.NC, Texts: env.NC, Streams: env.Streams, Memory: 1 << 10, Limiter: l, OutcomeBytes: -1})
	seq := env.Turn("s", `{"v":1,"messages":[{"role":"user","content":"x"}]}`)
	reader := l.Begin(limit.Account{Tenant: "a"})
	defer reader.End()
	if err := reader.Compute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for all := true; all; { // the others
		_, all = l.TryHold(limit.Processor, limit.Account{Tenant: "a"}, 1)
	}
	waits, computed := make(chan struct{}), make(chan struct{})
	go func() {
		release, err := l.Hold(enqueued{t.Context(), sync.OnceFunc(func() { close(waits) })}, limit.Processor, limit.Account{Tenant: "b"}, 1)
		if close(computed); err == nil {
			release()
		}
	}()
	<-waits
	if _, err := set.Payloads.Turn(reader.With(t.Context()), events.Address{Tenant: "t", Session: "s"}, measure.Seq(seq)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-computed: // before the reader had it again
	default:
		t.Error("a read of the log holds a processor")
	}
}
