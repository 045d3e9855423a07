package partition

import (
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// group is what is emitted about one event.
type group struct {
	outcomes []emitted
	end      position
}

// weight is about how many bytes of memory the group takes until it is committed.
func (g *group) weight() (n int) {
	for _, t := range g.outcomes {
		n += 1 << 10
		if v := t.outcome.View; v != nil {
			n += v.Weight()
		}
	}
	return n
}

// emitted is one outcome on its way.
type emitted struct {
	address events.Address
	outcome compaction.Outcome
	omitted string // why its messages are left out, "" if they are not
}

// receive handles one message of the log. The reader calls it, in order.
func (p *Partition) receive(m jetstream.Msg) {
	e, at, err := decide.ReadEvent(m)
	if err != nil {
		p.fail(err)
		return
	}
	p.behind.Store(e.Pending > backlog)
	p.awaitMemory()
	p.state.Lock()
	outs, text := p.decider.Process(e)
	p.decider.Events++
	p.decided = positionAfter(p.decided, e, at)
	p.unsnapped.Add(1)
	g, lost := group{end: p.decided}, p.decider.LoadErr
	crowding := p.memoryPressure()
	p.state.Unlock()
	if crowding > 0 {
		p.pauseIntake(crowding > 1)
		wakeUp(p.wake)
	}
	if lost != nil {
		p.fail(lost)
		return
	}
	failpoint.Pass("decided")
	if text && !p.behind.Load() { // a backlog runs through the cache before its sessions come back to it
		p.set.Payloads.Put(e)
	}
	for _, o := range outs {
		g.outcomes = append(g.outcomes, emitted{address: e.OutcomeAddress(), outcome: o})
	}
	p.push(g, e.Address)
	if e.Pending == 0 {
		wakeUp(p.logEmpty)
	}
	observe.Call(p.set.config.Listener.Applied, observe.Applied{Partition: p.ID, Seq: e.Seq, Kind: e.Kind, Outcomes: len(outs), Pending: e.Pending})
}

// push queues what was decided about one event of a session and waits while too much
// is queued.
func (p *Partition) push(g group, a events.Address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (len(p.queue) >= p.set.config.MaxAhead || p.queued > p.allowance) && !p.stopped {
		p.space.Wait()
	}
	if p.stopped {
		return // it will be read and decided again
	}
	p.end = g.end
	p.wakeAwaiting(a)
	if len(g.outcomes) == 0 {
		return
	}
	p.queue = append(p.queue, g)
	p.queued += g.weight()
	wakeUp(p.wake)
}
