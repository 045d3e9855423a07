package decide

import (
	"fmt"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// The log names a branch with its first turn, and again with its first turn in each thirtieth of the retention.
func TestForkedBy(t *testing.T) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	const hour = 60 * 60 * 1000
	d := New(config)
	d.Store = rows{}
	a := events.Address{Tenant: events.DefaultTenant, Session: "b"}
	for i, step := range []struct {
		kind  events.Kind
		data  string
		hours int64
		named bool
	}{
		{events.KindTurn, `"turn":1,"forked_from":{"session":"a","turn":3}`, 24*1000 + 1, true},
		{events.KindTurn, `"turn":2`, 24*1000 + 23, false},
		{events.KindTurn, `"turn":2,"expect":{"turn":9}`, 24*1001 + 1, false}, // refused
		{events.KindEnd, ``, 24*1001 + 2, false},
		{events.KindTurn, `"turn":1,"forked_from":{"session":"a","turn":3}`, 24*1001 + 3, true},
		{events.KindTurn, `"turn":2`, 24*1002 + 5, true},
		{events.KindTurn, `"turn":3`, 24*1002 + 6, false},
		{events.KindCompact, ``, 24*1003 + 7, false},
		{events.KindTurn, `"turn":4`, 24*1003 + 8, true},
	} {
		data := fmt.Sprintf(`{"v":1,%s,"messages":[{"role":"user","content":"turn %d"}]}`, step.data, i)
		if step.kind != events.KindTurn {
			data = `{}`
		}
		e := Event{Location: events.Location{Kind: step.kind, Address: a}, Seq: measure.Seq(i + 1), Time: step.hours * hour, Data: []byte(data)}
		d.Process(e)
		if f := d.ForkedBy(e); (f != nil) != step.named || f != nil && f.Session != "a" {
			t.Errorf("event %d: the log names %+v, want %t", e.Seq, f, step.named)
		}
	}
}
