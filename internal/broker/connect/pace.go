package connect

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// leastGap is between two tries to reconnect, on average, while they are refused at once, and mostGap the
	// longest: each try that costs its server more than slowTry, or is refused its credentials, doubles the gap.
	leastGap = 100 * time.Millisecond
	mostGap  = 3 * time.Second
	slowTry  = time.Second
)

// Pace spaces the tries of connections that lost their server, such as those of one process. A server that hashes
// passwords pays for each try, also for one that has ended: nats.go gives up at the first PING, 2 to 2.4 s after
// it sent the credentials. Without a pace, connections that come back together may never come back, since each
// try delays all others. The zero value is ready, and safe for concurrent use.
type Pace struct {
	mu   sync.Mutex
	gap  time.Duration // after a try
	next time.Time     // when one more may begin
}

// delay is how long the next try waits.
func (p *Pace) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = min(max(p.gap, leastGap), mostGap)
	now := time.Now()
	begin := now.Add(rand.N(leastGap))
	if p.next.After(begin) {
		begin = p.next
	}
	p.next = begin.Add(p.gap/2 + rand.N(p.gap))
	return begin.Sub(now)
}

// scale changes the gap after a try.
func (p *Pace) scale(by float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = time.Duration(by * float64(cmp.Or(p.gap, leastGap)))
}

// delayer is a nats.ReconnectDelayHandler for one connection.
func (p *Pace) delayer() func(tries int) time.Duration {
	var begun time.Time // of the last try
	return func(tries int) time.Duration {
		if tries > 1 && time.Since(begun) > slowTry {
			p.scale(2)
		}
		d := p.delay()
		begun = time.Now().Add(d)
		return d
	}
}
