package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// totals count the outcomes since a watch began.
type totals struct {
	began    time.Time
	sessions map[events.Address]bool
	kinds    map[string]int64
	saved    int64 // tokens, by compactions
}

func newTotals() *totals {
	return &totals{began: time.Now(), sessions: map[events.Address]bool{}, kinds: map[string]int64{}}
}

func (t *totals) add(a events.Address, r *tableRow) {
	t.sessions[a] = true
	t.kinds[r.kind]++
	if r.kind == "compacted" {
		t.saved += r.input - r.after
	}
}

// follow counts for a while. It reports whether ctx ended.
func (t *totals) follow(ctx context.Context, received <-chan *nats.Msg, pause time.Duration) (done bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case <-timer.C:
			return false, nil
		case m := <-received:
			a, r, err := readRow(m)
			if err != nil {
				return false, err
			}
			if r != nil {
				t.add(a, r)
			}
		}
	}
}

// String writes them in one line.
func (t *totals) String() string {
	return fmt.Sprintf("in %s: outcomes of %s; %s, %s saved; %s, %s", units.Span(max(time.Since(t.began), time.Second)), units.Count(len(t.sessions), "session"),
		units.Count(t.kinds["compacted"], "compaction"), units.Count(t.saved, "token"),
		units.Count(t.kinds["level"], "level")+" crossed", units.Count(t.kinds["rejected"], "event")+" rejected")
}

// levels counts the sessions at each level.
func (a *fleet) levels() string {
	out := []string{}
	for _, l := range []events.Level{events.LevelBlocking, events.LevelCompacting, events.LevelError, events.LevelWarning, events.LevelInfo, events.LevelOK} {
		if n := a.Levels[l]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, l))
		}
	}
	return strings.TrimSuffix(units.Count(a.Total, "session")+" of "+a.Tenant+": "+strings.Join(out, ", "), ": ")
}

// barLength is how many characters a full session's bar has.
const barLength = 10

// bar draws a share, in parts per million.
func bar(ppm int64) string {
	n := int(min(max(ppm, 0)*barLength/1_000_000, barLength))
	return strings.Repeat("█", n) + strings.Repeat("░", barLength-n)
}

// barStyle highlights the bar of a session that is nearly full.
func barStyle(value string) term.Style {
	switch n := strings.Count(value, "█"); {
	case n >= 8:
		return term.Bad
	case n >= 6:
		return term.Notice
	default:
		return term.Good
	}
}

// idle is how long ago a session's last turn was.
func idle(lastTurn int64) string {
	return units.Span(max(time.Since(time.UnixMilli(lastTurn)).Truncate(time.Second), 0))
}
