package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/worker/observe"
)

// hanging is a summarizer that does not answer before the context ends.
type hanging struct{}

func (hanging) Summarize(ctx context.Context, _ summarize.Input) (*events.Summary, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// P8: a model that hangs holds a slot for as long as the lane allows; then the embedded summarizer
// writes the summary. A worker that stops writes none.
func TestHangingModel(t *testing.T) {
	sanitize.Redact("warm up: what is made in a bubble must not be used outside")
	in := summarize.Input{Messages: summarizetest.History(1, 10), MaxUnits: 10_000}
	for lane, terms := range laneTerms {
		synctest.Test(t, func(t *testing.T) {
			p, began := Pool{Summarizer: hanging{}}, time.Now()
			s, err := p.write(t.Context(), terms.limit, in)
			if err != nil || s.Model != extract.Model || time.Since(began) != terms.limit {
				t.Errorf("%s: %+v, %v after %s", lane, s, err, time.Since(began))
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if s, err := p.write(ctx, terms.limit, in); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, stopped: %+v, %v", lane, s, err)
			}
		})
	}
}

// A job has its summary before the 15 minutes are over after which it is requested
// again, however long models are busy, and however the last try ends.
func TestLanes(t *testing.T) {
	for _, lane := range events.Lanes {
		if l, ok := laneTerms[lane]; !ok || l.slots < 1 || l.limit <= 0 || l.maxWait+l.limit >= 15*time.Minute {
			t.Errorf("%s: %+v", lane, l)
		}
	}
	if laneTerms[events.LaneEmergency].maxWait != 0 || laneTerms[events.LaneNormal].maxWait >= laneTerms[events.LaneBackground].maxWait {
		t.Error("the more urgent lane waits longer")
	}
}

// Whatever providers request, a pause is never longer than the rest of the maximum wait, except
// for the shortest pause of a second. So a job's pauses end with the maximum wait. After the last
// delivery there is no pause.
func TestPauses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		terms := laneTerms[rapid.SampledFrom(events.Lanes).Draw(r, "lane")]
		age := time.Duration(0)
		for n := uint64(1); ; n++ {
			skew := time.Duration(rapid.Int64Range(-int64(2*time.Hour), int64(2*time.Hour)).Draw(r, "skew"))
			if left := terms.remaining(age+skew, n); left < 0 || left > terms.maxWait {
				r.Fatalf("%s left of %s", left, terms.maxWait)
			}
			left := terms.remaining(age, n)
			if left == 0 {
				break
			}
			if n >= tries(age) {
				r.Fatalf("delivery %d has %s left", n, left)
			}
			after := time.Duration(rapid.Int64Range(0, int64(left)).Draw(r, "after"))
			pause := pauseBefore(&summarize.RetryAfterError{After: after}, left, n)
			if pause < time.Second || pause > max(time.Second, left) || pause < after {
				r.Fatalf("delivery %d, %s left, requested %s: pause of %s", n, left, after, pause)
			}
			age += pause
		}
		if age > terms.maxWait+time.Second {
			r.Fatalf("pauses of %s in all, maximum wait of %s", age, terms.maxWait)
		}
	})
	for n, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second} {
		if got := pauseBefore(&summarize.RetryAfterError{}, time.Hour, uint64(n+1)); got != want {
			t.Errorf("delivery %d waits %s, want %s", n+1, got, want)
		}
	}
}

// message is a delivery that records how it is acknowledged.
type message struct {
	jetstream.Msg
	data     []byte
	renewals atomic.Int64
	given    []time.Duration
}

func (m *message) Data() []byte { return m.data }

func (m *message) InProgress() error { m.renewals.Add(1); return nil }

func (m *message) NakWithDelay(d time.Duration) error { m.given = append(m.given, d); return nil }

// The delivery of a job under way is renewed three times in the time after which the job would be
// delivered again, and never once the job has a result.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, m := Pool{Listener: &observe.Listener{}}, &message{}
		stop := p.keepAlive(t.Context(), m)
		time.Sleep(jobAckWait + time.Second)
		if n := m.renewals.Load(); n != 3 {
			t.Errorf("%d renewals in %s", n, jobAckWait)
		}
		stop()
		stop()
		time.Sleep(time.Hour)
		if n := m.renewals.Load() - 3; n != 0 {
			t.Errorf("%d renewals of a job that has a result", n)
		}
	})
}

// A job that waits for a slot of its tenant is renewed as well, as long as it waits.
func TestHeldAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := Pool{Listener: &observe.Listener{}}, newShares(1)
		a, b := &message{}, &message{}
		s.take("t")
		s.hold("t", a)
		s.hold("t", b)
		ctx, cancel := context.WithCancel(t.Context())
		go p.renewHeld(ctx, s)
		time.Sleep(jobAckWait + time.Second)
		if m, ok := s.next("t"); !ok || m != a {
			t.Fatal("the first is not the next")
		}
		time.Sleep(jobAckWait)
		cancel()
		time.Sleep(time.Hour)
		if x, y := a.renewals.Load(), b.renewals.Load(); x != 3 || y != 6 {
			t.Errorf("%d and %d renewals", x, y)
		}
	})
}

// A job that rested because its tenant has many is not given up for that, also when each try
// rests until its time is over; one whose workers crash is, after a few.
func TestTries(t *testing.T) {
	deliveries := func(each time.Duration) (n uint64) {
		for age := time.Duration(0); ; age += each {
			if n++; n > tries(age) || age > 24*time.Hour {
				return n
			}
		}
	}
	for age := time.Duration(0); age < compaction.JobExpiry*time.Millisecond; age += heldPause {
		if n := uint64(age/heldPause) + 1; n > tries(age) || n >= tries(age) {
			t.Errorf("after %d rests no try is left", n-1)
		}
	}
	if n := deliveries(jobAckWait); n < jobDeliveries || n > 2*jobDeliveries {
		t.Errorf("%d workers crash", n)
	}
	if tries(-time.Hour) != jobDeliveries {
		t.Error("a clock that is behind takes tries away")
	}
}

// A job without a result is delivered again: after a delay if models are busy, after a report for
// other failures, at once if the worker stops.
func TestGiveBack(t *testing.T) {
	busy := &summarize.RetryAfterError{After: 17 * time.Second, Err: &model.Error{Kind: model.RateLimited, RetryAfter: 17 * time.Second}}
	for _, c := range []struct {
		name    string
		err     error
		stopped bool
		pause   time.Duration
		delayed int
		retries int
	}{
		{"busy", busy, false, 17 * time.Second, 1, 0},
		{"failure", errors.New("no answer"), false, jobPause, 0, 1},
		{"stop", context.Canceled, true, 0, 0, 0},
		{"busy, and stop", busy, true, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			delayed, retries := 0, 0
			p := Pool{Listener: &observe.Listener{
				SummaryDelayed: func(e observe.SummaryDelayed) {
					if delayed++; e.Pause != c.pause || e.Attempt != 2 || e.Err == nil {
						t.Errorf("%s: reported %+v", c.name, e)
					}
				},
				Retrying: func(observe.Retrying) { retries++ },
			}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.stopped {
				cancel()
			}
			m := &message{}
			p.giveBack(ctx, m, &delivery{lane: events.LaneNormal, number: 2, requestedAt: time.Now()}, c.err)
			if len(m.given) != 1 || m.given[0] != c.pause || delayed != c.delayed || retries != c.retries {
				t.Errorf("%s: given back after %v, %d delays and %d failures reported", c.name, m.given, delayed, retries)
			}
		})
	}
}

// A user who requested a compaction does not wait for models that are busy.
func TestManualDoesNotWait(t *testing.T) {
	d := delivery{lane: events.LaneNormal, number: 1, requestedAt: time.Now()}
	if d.maxWait() <= 0 {
		t.Error("a job at the trigger has no maximum wait")
	}
	if d.job.Manual = (&events.Manual{}); d.maxWait() != 0 {
		t.Errorf("a manual compaction waits %s", d.maxWait())
	}
}
