package partition

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/events"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/quota"
)

// A tenant whose histories take long has outcomes without messages while another one uses the partition.
func TestHistoriesOfATenantTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := committer{scope: scope{set: &Set{quotas: quota.New(quota.Config{PerHour: -1})}}, queue: newQueue(1, 1<<20)}
		slow := func(ctx context.Context) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		event := func(tenant string, outcomes ...emitted) {
			c.queue.push(group{outcomes: outcomes}, events.Address{Tenant: tenant, Session: "s"})
		}
		event("slow")
		if over, err := c.timed(t.Context(), "slow", slow); over || err != nil || c.omits("slow") != "" {
			t.Errorf("alone: %t %v, omits %q", over, err, c.omits("slow"))
		}
		event("other")
		event("slow")
		began := time.Now()
		if over, _ := c.timed(t.Context(), "slow", slow); !over || time.Since(began) != renderTime {
			t.Errorf("beside another one: %t after %v", over, time.Since(began))
		}
		if got := c.omits("slow"); got != "" {
			t.Errorf("while nothing waits: %q", got)
		}
		event("other", emitted{address: events.Address{Tenant: "other", Session: "s"}})
		time.Sleep(longWait + 1)
		if c.omits("slow") != observe.OmittedTime || c.omits("other") != "" {
			t.Errorf("while an outcome waits: %q and %q", c.omits("slow"), c.omits("other"))
		}
		time.Sleep(10 * time.Second)
		if got := c.omits("slow"); got != "" {
			t.Errorf("with time again: %q", got)
		}
		c.times.Spend("slow", time.Hour)
		if got := c.omits("slow"); got != observe.OmittedTime {
			t.Errorf("after an hour: %q", got)
		}
		c.queue.remove(1)
		if got := c.omits("slow"); got != "" {
			t.Errorf("when nothing waits any more: %q", got)
		}
		event("other", emitted{address: events.Address{Tenant: "slow", Session: "s"}})
		go event("other") // the queue is full
		synctest.Wait()
		time.Sleep(longWait + 1)
		if got := c.omits("slow"); got != observe.OmittedTime {
			t.Errorf("while an event waits: %q", got)
		}
		c.queue.close()
	})
}
