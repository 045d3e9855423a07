package connect

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// leastGap is the smallest average gap between two attempts to reconnect, mostGap the largest. An attempt that
	// takes longer than slowTry, or whose credentials are refused, doubles the gap.
	leastGap = 100 * time.Millisecond
	mostGap  = 3 * time.Second
	slowTry  = time.Second
)

// Pace spaces the reconnects of several connections, such as those of one process. A server that hashes passwords
// pays for each attempt, even an abandoned one: nats.go gives up at the first PING, 2 to 2.4 s after it sent the
// credentials. Without a pace, connections that reconnect together may never succeed, since each attempt delays
// all others. The zero value is ready, and safe for concurrent use.
type Pace struct {
	mu   sync.Mutex
	gap  time.Duration // average time between attempts
	next time.Time     // earliest begin of the next attempt
}

// delay returns the wait before the next attempt, and reserves its time.
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

// scale multiplies the gap.
func (p *Pace) scale(by float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = time.Duration(by * float64(cmp.Or(p.gap, leastGap)))
}

// delayer returns a nats.ReconnectDelayHandler for one connection.
func (p *Pace) delayer() func(tries int) time.Duration {
	var begun time.Time // begin of the last attempt
	return func(tries int) time.Duration {
		if tries > 1 && time.Since(begun) > slowTry {
			p.scale(2)
		}
		d := p.delay()
		begun = time.Now().Add(d)
		return d
	}
}
