package jobs

import (
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize"
)

// laneLimits limits the work of one worker on the jobs of a lane.
type laneLimits struct {
	// slots is the number of jobs at a time. Each lane has its own, so that other jobs never
	// delay an emergency.
	slots int
	// share is the number of slots for one tenant: one less than slots, so that no tenant blocks
	// all others.
	share int
	// maxWait is the age up to which a job waits for busy models; then the embedded summarizer
	// writes.
	maxWait time.Duration
	// limit is the time limit of one attempt; then the embedded summarizer writes. So a model
	// that hangs does not hold a slot forever.
	limit time.Duration
}

// laneTerms holds the limits of each lane. In an emergency the agent already has an answer without
// a summary, so a job does not wait for models. At the trigger a session has some space left; in
// the background it has more. maxWait and limit together stay below [compaction.JobExpiry],
// after which a job is requested again.
var laneTerms = map[events.Lane]laneLimits{
	events.LaneEmergency:  {slots: 3, share: 2, maxWait: 0, limit: 5 * time.Minute},
	events.LaneNormal:     {slots: 5, share: 4, maxWait: time.Minute, limit: 12 * time.Minute},
	events.LaneBackground: {slots: 3, share: 2, maxWait: 4 * time.Minute, limit: 10 * time.Minute},
}

// firstWait is the pause before the second attempt of a job if its busy models give no time. It
// doubles with each attempt.
const firstWait = 10 * time.Second

// remaining returns the time that a job of an age may still wait for its models; the last delivery
// does not wait. A wrong clock changes the time, but not beyond the lane's maxWait.
func (t laneLimits) remaining(age time.Duration, delivery uint64) time.Duration {
	if delivery >= tries(age) {
		return 0
	}
	return min(max(0, t.maxWait-age), t.maxWait)
}

// pauseBefore returns the pause before the next delivery: the provider's, or else one that grows
// with the deliveries; at most left, but at least a second.
func pauseBefore(l *summarize.RetryAfterError, left time.Duration, delivery uint64) time.Duration {
	d := l.After
	if d <= 0 {
		d = firstWait << min(delivery-1, jobDeliveries)
	}
	return max(time.Second, min(d, left))
}
