package decide

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// BenchmarkProcess is a turn of 1.5 KiB, from its bytes to the ledger.
func BenchmarkProcess(b *testing.B) {
	d, next := worked(b)
	b.ReportAllocs()
	for b.Loop() {
		next(d)
	}
}

// A turn without outcomes takes the memory of its id and of the path that its call names, and now
// and then that of its entries.
func TestProcessAllocates(t *testing.T) {
	d, next := worked(t)
	for range 200 { // small lists grow often
		next(d)
	}
	if n := testing.AllocsPerRun(200, func() { next(d) }); n > 4 {
		t.Errorf("%.0f allocations a turn", n)
	}
}

// worked returns a decider, and what publishes the next turn of a session far below its
// window.
func worked(t testing.TB) (*Decider, func(*Decider)) {
	t.Helper()
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"v":1,"id":"0198a3c4-0000-7000-8000-000000000001","model":{"provider":"anthropic","name":"m","context_window":274877906944},"format":"anthropic","messages":[` +
		`{"role":"assistant","content":[{"type":"text","text":"` + strings.Repeat(`the agent logs why `, 15) + `"},` +
		`{"type":"tool_use","id":"toolu_0123456789abcdef","name":"read_file","input":{"path":"/usr/src/app/handler.go"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0123456789abcdef","content":"` + strings.Repeat(`error: cannot find symbol at line 214\n`, 18) + `"}]}],` +
		`"usage":{"input_tokens":4,"cache_read_input_tokens":12345,"output_tokens":120}}`)
	var seq measure.Seq
	e := Event{Location: events.Location{Kind: events.KindTurn, Address: events.Address{Tenant: "t", Session: "s"}}, Data: payload}
	next := func(d *Decider) {
		seq++
		e.Seq, e.Time = seq, int64(seq)
		if outs, text := d.Process(e); len(outs) > 0 || !text {
			t.Fatalf("%+v", outs)
		}
	}
	return New(c), next
}
