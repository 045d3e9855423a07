package main

import (
	"fmt"
	"runtime"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/tools/harness"
)

// measureEntries fills sessions of 100 messages and divides by their entries.
func measureEntries(f *fleet, o options, p printer) error {
	bytes, entries, err := f.weight(o.sessions, 100/messagesPerTurn)
	if err != nil {
		return err
	}
	p.line(lineEntry, bytes/float64(entries), "bytes")
	return nil
}

// measureIdle makes sessions with one turn.
func measureIdle(f *fleet, o options, p printer) error {
	bytes, _, err := f.weight(o.idle, 1)
	if err != nil {
		return err
	}
	p.line(lineIdle, bytes/float64(o.idle), "bytes")
	return nil
}

// weight is what the heap grows by for so many sessions of so many turns, each
// held as a worker holds it: by the address that the subject of its first turn
// gave.
func (f *fleet) weight(sessions, turns int) (bytes float64, entries int, err error) {
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return 0, 0, err
	}
	before := heap()
	ledgers := map[events.Address]*compaction.Ledger{}
	seq := measure.Seq(0)
	for s := range sessions {
		at, err := events.ParseLog(fmt.Sprintf("log.%d.turn.t%d.s%d", s%harness.Partitions, s%tenants, s))
		if err != nil {
			return 0, 0, err
		}
		l := compaction.NewLedger(at.Address)
		for k := range turns {
			seq++
			t, msgs, err := stored.ReadTurn(new(compaction.Config), l, vast(f.body(s, k)), seq)
			if err != nil {
				return 0, 0, err
			}
			_, next := compaction.Decide(l, t, c)
			next.Install(l)
			for _, m := range msgs {
				entries += len(measure.Measure(m, measure.Entry{}))
			}
		}
		ledgers[at.Address] = l
	}
	bytes = heap() - before
	runtime.KeepAlive(ledgers)
	return bytes, entries, nil
}

// heap is what is in use once nothing is left to collect.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what pools held until now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
