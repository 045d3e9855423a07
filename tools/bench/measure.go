package main

import (
	"runtime"
	"strings"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
	"compactd/tools/harness"
)

// measuredBytes is how much text one round measures.
const measuredBytes = 64 << 20

// measureMeasure compares Measure with the least that reads every byte.
func measureMeasure(f *fleet, o options, p printer) error {
	msgs, size, err := f.messages()
	if err != nil {
		return err
	}
	var speeds, ratios []float64
	for range o.rounds {
		runtime.GC()
		times := measuredBytes/size + 1
		measured := repeat(times, func() (n uint64) {
			for _, m := range msgs {
				n += uint64(len(measure.Measure(m, measure.Entry{})))
			}
			return n
		})
		floor := repeat(times, func() (n uint64) {
			for _, m := range msgs {
				for _, part := range m.Parts {
					n += sum(part.Text) + sum(string(part.Args))
				}
			}
			return n
		})
		speeds = append(speeds, float64(size*times)/1e6/measured.Seconds())
		ratios = append(ratios, floor.Seconds()/measured.Seconds())
	}
	p.line(lineMeasure, harness.Median(speeds), "mb/s")
	p.line("measure_over_floor", harness.Median(ratios), "ratio")
	return nil
}

func repeat(times int, work func() uint64) time.Duration {
	var all uint64
	began := time.Now()
	for range times {
		all += work()
	}
	took := time.Since(began)
	runtime.KeepAlive(all) // or there is no need to work
	return took
}

func sum(s string) (n uint64) {
	for i := range len(s) {
		n += uint64(s[i])
	}
	return n
}

// messages reads the payloads, with contents of the size that agents get, so that
// what a message costs by itself is little. size is that of all their text.
func (f *fleet) messages() (msgs []dialect.Message, size int, err error) {
	for _, b := range f.payloads {
		_, more, err := stored.ReadTurn(new(compaction.Config), compaction.NewLedger(someone), vast(b), 1)
		if err != nil {
			return nil, 0, err
		}
		msgs = append(msgs, more...)
	}
	const larger = 8 // a result has 4 KiB then
	for i := range msgs {
		for k := range msgs[i].Parts {
			part := &msgs[i].Parts[k]
			part.Text = strings.Repeat(part.Text, larger)
			size += len(part.Text) + len(part.Args)
		}
	}
	return msgs, size, nil
}
