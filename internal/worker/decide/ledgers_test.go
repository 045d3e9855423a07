package decide

import (
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// rows is a store in memory.
type rows map[events.Address][]compaction.Row

func (r rows) Release() {}

func (r rows) Load(a events.Address) ([]compaction.Row, error) { return r[a], nil }
func (rows) List(string, string, int) ([]string, error)        { return nil, nil }

func (rows) After(events.Address, int) ([]events.Address, error) { return nil, nil }

func (r rows) write(t *testing.T, d *Decider) (written []*Entry) {
	t.Helper()
	changes, written, err := d.Collect()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		r[c.Address] = c.Rows
	}
	return written
}

// firstTurn is the first turn of a session.
func firstTurn(a events.Address) Event {
	return Event{
		Location: events.Location{Kind: events.KindTurn, Address: a}, Seq: 1, Time: 1,
		Data: []byte(`{"v":1,"id":"1","turn":1,"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"go on"}]}`),
	}
}

// The overview of a session outside of memory is that of the config in force.
func TestOverviewFollowsConfig(t *testing.T) {
	config := func(changes string) *compaction.Config {
		p, err := policy.Default().Set(codec.Raw(changes))
		if err != nil {
			t.Fatal(err)
		}
		c, err := compaction.NewConfig(p, measure.DefaultWindows())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	high, low := config(`{}`), config(`{"threshold":0.4,"target":0.2,"info":0.3}`)
	d, file := New(high), rows{}
	d.Store = file
	a := events.Address{Tenant: events.DefaultTenant, Session: "a"}
	d.Process(firstTurn(a))
	d.SetStored(file.write(t, d))
	if d.Evict(0, 0); len(d.Cache) > 0 {
		t.Fatal("the ledger is in memory")
	}
	trigger := func(c *compaction.Config) int64 {
		t.Helper()
		o, err := d.Overview(a, c)
		if err != nil || !o.Known {
			t.Fatalf("%+v, %v", o, err)
		}
		return o.Budget.TriggerTokens
	}
	before := trigger(high)
	if after := trigger(low); after >= before || trigger(high) != before {
		t.Errorf("the trigger is at %d tokens, and was at %d under a higher threshold", after, before)
	}
}

// Ledgers leave memory when none was used for a while, and return; one that is not stored
// yet stays.
func TestEvictUnused(t *testing.T) {
	policy, ok := policy.Preset("claude") // it clears the results of idle sessions
	if !ok {
		t.Fatal("no preset")
	}
	config, err := compaction.NewConfig(policy, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	d, file := New(config), rows{}
	d.Store = file
	a := events.Address{Tenant: events.DefaultTenant, Session: "a"}
	d.Process(firstTurn(a))
	evict := func(when string, want int) {
		t.Helper()
		if d.EvictUnused(); len(d.Cache) != want || (d.Weight > 0) != (want > 0) {
			t.Errorf("%d ledgers of %d bytes are in memory %s; want %d", len(d.Cache), d.Weight, when, want)
		}
	}
	evict("after a turn", 1)
	evict("before the checkpoint", 1)
	written := file.write(t, d)
	evict("while it is written", 1)
	d.SetStored(written)
	if _, err := d.Ledger(a); err != nil {
		t.Fatal(err)
	}
	evict("after a use", 1)
	evict("unused", 0)
	if l, err := d.Ledger(a); err != nil || l.LastTurn() != 1 {
		t.Errorf("the ledger does not return: %v", err)
	}
}
