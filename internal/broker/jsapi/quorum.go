package jsapi

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// followerTimeout is how old a leader's last message from another copy may be for that copy to
// count as its follower. Copies send one every 2 s, and elect another leader no sooner than
// 4 s after the last message of theirs.
const followerTimeout = 3 * time.Second

// ErrNoQuorum is the error of an answer that no leader with a quorum gave.
var ErrNoQuorum = errors.New("the server that answers does not lead most copies of the stream")

// HasQuorum reports whether the server that answered with c is the leader that most copies
// follow. Others answer too: a copy that has just started, one without a leader, and, for a
// second after its return, a leader that was cut off while another one was elected. They do
// not have what was stored meanwhile, and report all copies as up to date.
func HasQuorum(c *jetstream.ClusterInfo) bool {
	if c == nil || len(c.Replicas) == 0 {
		return true // there is one copy
	}
	follow := 1
	for _, r := range c.Replicas { // the others
		if r.Name == c.Leader {
			return false
		}
		if 0 < r.Active && r.Active < followerTimeout {
			follow++
		}
	}
	return c.Leader != "" && 2*follow > len(c.Replicas)+1
}
