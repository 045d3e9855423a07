package jsapi

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A state is believed when it comes from a leader that most copies have followed lately,
// and from no other server that answers (P13).
func TestQuorum(t *testing.T) {
	t.Parallel()
	peer := func(name string, active time.Duration) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: name, Current: true, Active: active}
	}
	for name, c := range map[string]struct {
		info *jetstream.ClusterInfo
		want bool
	}{
		"no cluster":                  {nil, true},
		"one copy":                    {&jetstream.ClusterInfo{Leader: "a"}, true},
		"a leader":                    {&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{peer("b", time.Second), peer("c", time.Millisecond)}}, true},
		"one node is away":            {&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{peer("b", time.Minute), peer("c", time.Millisecond)}}, true},
		"it was cut off":              {&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{peer("b", 5*time.Second), peer("c", 5*time.Second)}}, false},
		"no copy has followed it yet": {&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{peer("b", 0), peer("c", 0)}}, false},
		"a follower":                  {&jetstream.ClusterInfo{Leader: "b", Replicas: []*jetstream.PeerInfo{peer("b", time.Second), peer("c", time.Second)}}, false},
		"no leader":                   {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{peer("a", time.Second), peer("b", time.Second), peer("c", time.Second)}}, false},
	} {
		if got := HasQuorum(c.info); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
