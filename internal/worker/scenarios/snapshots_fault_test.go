//go:build faults

package scenarios_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/failpoint"
)

// A worker is killed at each step of storing and restoring a snapshot, several times, while agents
// publish. The next one, on an empty directory, continues from the newest complete snapshot. At
// the end the outcomes follow from the log, and no part of an unfinished upload is left (P1,
// P10).
func TestFaultSnapshots(t *testing.T) {
	t.Parallel()
	bin, dir := buildWorker(t, "-tags", "faults"), t.TempDir()
	server, err := embedded.Start(embedded.Config{Dir: dir, Listen: workertest.FreePort(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	url := server.ClientURL()
	nc, js := workertest.Dial(t, url)
	if _, err := topology.Ensure(t.Context(), js, topology.Config{Partitions: 2, CreateBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	for s := range 3000 { // enough for files of several chunks
		a := events.Address{Tenant: "t", Session: fmt.Sprintf("idle%d", s)}
		if _, err := js.PublishAsync(events.Published(events.KindTurn, a), agentTurn(s%24, 1)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	start := func(env ...string) *process {
		p := &process{t: t, bin: bin, data: t.TempDir(), env: env, args: []string{"--nats", url, "--lease-ttl", "1s", "--snapshot-every", "1s"}}
		p.start()
		t.Cleanup(p.kill)
		return p
	}
	first := start()
	first.awaitReady()
	sub := newSubscriber(t, url)
	agents := newAgentFleet(t, url, 12, 100)
	sub.await(1)
	awaitSnapshots(first)
	first.kill()

	k, restored := killing{kills: 1}, 0
	for round := range 3 {
		for _, at := range failpoint.SnapshotNames {
			if at == "snapshot-reading" {
				at = fmt.Sprintf("%s:%d", at, 2+round) // the first is before anything is uploaded
			}
			start("COMPACTD_FAILPOINT=" + at).awaitKilled(at)
			k.kills++
			next := start()
			next.awaitReady()
			restored += restoredBy(next)
			sub.await(sub.count() + 1)
			next.kill()
			k.kills++
		}
	}
	last := start()
	awaitSnapshots(last)
	sub.await(sub.count() + 1)
	acks := agents.stop()
	awaitDecided(t, url)
	last.terminate()
	parts := orphans(t, js)
	nc.Close()
	received := sub.stop()
	server.Stop()
	k.audit(t, dir, acks, received)
	for _, v := range k.violations {
		t.Error(v)
	}
	found := k.found()
	figures.Print(t, "P10", "kills", k.kills, "restored", restored, "acks", k.acks, "lost", found[lostTurn], "outcomes", k.outcomes,
		"twice", found[twiceStored], "missing", found[missing], "parts_left", parts)
	if restored < 20 || k.acks == 0 || k.outcomes == 0 {
		t.Errorf("%d partitions continued from snapshots: the test shows nothing", restored)
	}
	if parts > 0 {
		t.Errorf("%d parts of uploads are left", parts)
	}
	if left, err := filepath.Glob(filepath.Join(last.data, "ledgers", "*.copy*")); len(left) > 0 || err != nil {
		t.Errorf("copies are left: %v, %v", left, err)
	}
}

// awaitSnapshots waits until a worker has stored one of each of the two partitions.
func awaitSnapshots(p *process) {
	p.t.Helper()
	deadline := time.After(workertest.WaitLimit)
	for {
		stored := 0
		for _, id := range []string{`"partition":0,`, `"partition":1,`} {
			for line := range strings.Lines(p.log.text()) {
				if strings.Contains(line, `"message":"snapshot stored"`) && strings.Contains(line, id) {
					stored++
					break
				}
			}
		}
		if stored == 2 {
			return
		}
		select {
		case <-p.log.more:
		case err := <-p.exited:
			p.t.Fatalf("the worker ended: %v\n%s", err, p.log.text())
		case <-deadline:
			p.t.Fatalf("snapshots of %d of 2 partitions\n%s", stored, p.log.text())
		}
	}
}

// orphans counts the messages of the store that belong to no snapshot.
func orphans(t *testing.T, js jetstream.JetStream) int {
	t.Helper()
	store, err := js.ObjectStore(t.Context(), topology.SnapshotsBucket)
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "OBJ_"+topology.SnapshotsBucket)
	if err != nil {
		t.Fatal(err)
	}
	left := int(stream.CachedInfo().State.Msgs)
	for _, o := range all {
		left -= 1 + int(o.Chunks)
	}
	return left
}

// restoredBy counts the partitions that a worker has restored from a snapshot, by its log.
func restoredBy(p *process) (n int) {
	for line := range strings.Lines(p.log.text()) {
		var acquired struct {
			Message  string `json:"message"`
			Snapshot uint64 `json:"snapshot"`
			Restored int    `json:"from_snapshot"`
		}
		if json.Unmarshal([]byte(line), &acquired) != nil { // the last line may be half of one
			continue
		}
		switch acquired.Message {
		case "partition acquired":
			n += int(min(acquired.Snapshot, 1))
		case "partitions acquired":
			n += acquired.Restored
		}
	}
	return n
}
