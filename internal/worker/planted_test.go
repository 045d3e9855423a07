package worker_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/broker"
	"compactd/internal/broker/embedded"
	"compactd/internal/events"
	"compactd/internal/plantedtest"
	"compactd/internal/worker"
)

// Empty messages that look like the server's own are rejected like any malformed event, under
// their sequence, and stop nobody: hostile actors, control-message look-alikes.
func TestControlLookalikes(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir(), Listen: "-1"}, broker.Topology{Partitions: 1})
	stop := w.run("w", worker.Listener{Fetched: func(e worker.Fetched) { t.Errorf("event %d was not read at once: %v", e.Seq, e.Err) }})
	c, err := plantedtest.Dial(w.server.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	planted := map[uint64]string{}
	blocks := append(plantedtest.Controls(), plantedtest.Malformed()...)
	for i, b := range blocks {
		seq, err := c.Publish(fmt.Sprintf("session.turn.default.evil%d", i%7), b.Text, "")
		if err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		planted[seq] = b.Name
		w.publish(events.KindTurn, "good", turn(i+1))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for subject, all := range w.stored() {
		for _, o := range all {
			var r events.Rejected
			if !strings.Contains(subject, ".rejected.") || events.Unmarshal([]byte(o), &r) != nil {
				continue
			}
			if planted[r.Seq] == "" || r.Code != events.CodeBadJSON {
				t.Errorf("%s: event %d (%s) is rejected with %s", subject, r.Seq, planted[r.Seq], r.Code)
			}
			delete(planted, r.Seq)
		}
	}
	for seq, name := range planted {
		t.Errorf("event %d (%s) was not rejected", seq, name)
	}
	w.wantAsLogSays()
}
