package main

import (
	"bytes"
	"fmt"
	"runtime"
	"time"

	"compactd/internal/events"
	"compactd/internal/ops/transcript"
	"compactd/tools/harness"
)

// decodedBytes is how much one round decodes in each dialect, counted in that of the fleet.
const decodedBytes = 16 << 20

// measureDecode decodes the same turns in every dialect, and compares how long that takes with
// the dialect of the fleet. A dialect that writes more bytes for the same turn pays for them.
func measureDecode(f *fleet, o options, p printer) error {
	of, size, err := f.inDialects()
	if err != nil {
		return err
	}
	times := decodedBytes/size + 1
	speeds, ratios := []float64{}, map[events.Format][]float64{}
	for range o.rounds {
		took := map[events.Format]time.Duration{}
		for _, format := range events.Formats() {
			runtime.GC()
			began := time.Now()
			for range times {
				if err := decodeAll(of[format], format); err != nil {
					return err
				}
			}
			took[format] = time.Since(began)
		}
		least := took[events.Anthropic].Seconds()
		speeds = append(speeds, float64(size*times)/1e6/least)
		for format, t := range took {
			ratios[format] = append(ratios[format], least/t.Seconds())
		}
	}
	p.line(lineDecode+"_mb_s", harness.Median(speeds), "mb/s")
	for _, format := range events.Formats() {
		if format != events.Anthropic {
			p.line(lineDecode+"_"+string(format)+"_over_anthropic", harness.Median(ratios[format]), "ratio")
		}
	}
	return nil
}

// decodeAll reads turns as a partition does.
func decodeAll(turns []transcript.Turn, format events.Format) error {
	var d events.Decoder
	for _, t := range turns {
		if _, err := d.Turn(t.Payload, format); err != nil {
			return fmt.Errorf("decode a turn in %s: %w", format, err)
		}
	}
	return nil
}

// inDialects returns the turns of the fleet in every dialect. size is that of all in their own.
func (f *fleet) inDialects() (of map[events.Format][]transcript.Turn, size int, err error) {
	s := transcript.Session{Name: "fleet", Format: events.Anthropic}
	for i, messages := range f.payloads {
		payload := bytes.Replace(vast(messages), []byte(`{`), fmt.Appendf(nil, `{"turn":%d,`, i+1), 1)
		turn, err := events.DecodeTurn(payload)
		if err != nil {
			return nil, 0, err
		}
		s.Turns = append(s.Turns, transcript.Turn{Number: int64(i + 1), Payload: payload, Messages: turn.Messages})
		size += len(payload)
	}
	of = map[events.Format][]transcript.Turn{}
	for _, format := range events.Formats() {
		in, err := s.As(format)
		if err != nil {
			return nil, 0, err
		}
		of[format] = in.Turns
	}
	return of, size, nil
}
