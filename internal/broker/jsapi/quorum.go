package jsapi

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// followerTimeout is the maximum age of a copy's last message to the leader for that copy to count
// as a follower. A copy sends a message every 2 s, and elects another leader at the earliest 4 s
// after its last one.
const followerTimeout = 3 * time.Second

// ErrNoQuorum reports an answer that is not from a leader with a quorum.
var ErrNoQuorum = errors.New("the server that answers does not lead most copies of the stream")

// HasQuorum reports whether the server that answered with c is the leader that most copies
// follow. Other servers answer too: a copy that has just started, a copy without a leader, and, for a
// second after its return, a leader that was cut off during an election. They lack the
// messages of that time, and report all copies as up to date.
func HasQuorum(c *jetstream.ClusterInfo) bool {
	if c == nil || len(c.Replicas) == 0 {
		return true // a single copy
	}
	follow := 1
	for _, r := range c.Replicas { // the other copies
		if r.Name == c.Leader {
			return false
		}
		if 0 < r.Active && r.Active < followerTimeout {
			follow++
		}
	}
	return c.Leader != "" && 2*follow > len(c.Replicas)+1
}
