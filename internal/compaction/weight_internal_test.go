package compaction

import (
	"testing"
	"unsafe"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// The weight of a ledger follows its parts.
func TestWeight(t *testing.T) {
	for name, sizes := range map[string][2]uintptr{
		"entry": {unsafe.Sizeof(measure.Entry{}), measure.HeldEntry},
		"turn":  {unsafe.Sizeof(turnRecord{}), heldTurn},
		"span":  {unsafe.Sizeof(span{}), heldSpan},
		"edit":  {unsafe.Sizeof(editRecord{}), heldEdit},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s has %d bytes, not %d", name, sizes[0], sizes[1])
		}
	}
	l := NewLedger(events.Address{Tenant: "t", Session: "s"})
	empty := l.Weight()
	for range 1000 {
		l.entries.add(measure.Entry{})
	}
	if grown := l.Weight() - empty; grown < 1000*measure.HeldEntry || grown > 1040*measure.HeldEntry {
		t.Errorf("1,000 entries weigh %d bytes", grown)
	}
}

// The chain, by which a sync finds what a session has of a history, costs at most 32 bytes a
// turn beside what is kept of each turn anyway.
func TestChainWeight(t *testing.T) {
	var r turnRecord
	cost := unsafe.Sizeof(r) - unsafe.Sizeof(r.identity) - unsafe.Sizeof(r.seq)
	t.Logf("chain_bytes_per_turn=%d", cost)
	if cost > 32 {
		t.Errorf("the chain costs %d bytes a turn", cost)
	}
}
