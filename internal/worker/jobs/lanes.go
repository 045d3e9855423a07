package jobs

import (
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize"
)

// laneLimits are how one worker works on the jobs of a lane.
type laneLimits struct {
	// slots is how many jobs at a time. Emergencies have their own, so that a full
	// house of others never holds one up.
	slots int
	// share is how many of the slots one tenant may have, one less, so that none
	// holds up all others.
	share int
	// maxWait is how old a job may become while its models are busy; then the
	// embedded summarizer writes.
	maxWait time.Duration
	// limit is how long one try may take; then the embedded summarizer writes. It
	// is what keeps models that hang from holding a slot for ever.
	limit time.Duration
}

// laneTerms are the terms of each lane. An agent in an emergency has had its answer
// without a summary, and gets the better one after one try. At the trigger a
// session has room left for a while; in the background it has more. maxWait and
// limit together stay below [compaction.JobExpiry], after which a job is requested again.
var laneTerms = map[events.Lane]laneLimits{
	events.LaneEmergency:  {slots: 3, share: 2, maxWait: 0, limit: 5 * time.Minute},
	events.LaneNormal:     {slots: 5, share: 4, maxWait: time.Minute, limit: 12 * time.Minute},
	events.LaneBackground: {slots: 3, share: 2, maxWait: 4 * time.Minute, limit: 10 * time.Minute},
}

// firstWait is the pause before the second try of a job whose models are busy and
// do not say for how long; it doubles with each try.
const firstWait = 10 * time.Second

// remaining is how long a job may still wait for its models, requested so long ago. The
// last delivery waits for nothing. Clocks that differ only make it longer or
// shorter, never longer than the lane's.
func (t laneLimits) remaining(age time.Duration, delivery uint64) time.Duration {
	if delivery >= tries(age) {
		return 0
	}
	return min(max(0, t.maxWait-age), t.maxWait)
}

// pauseBefore is the pause before the next delivery: what a provider requested, else one
// that grows with the deliveries; never longer than what is left.
func pauseBefore(l *summarize.RetryAfterError, left time.Duration, delivery uint64) time.Duration {
	d := l.After
	if d <= 0 {
		d = firstWait << min(delivery-1, jobDeliveries)
	}
	return max(time.Second, min(d, left))
}
