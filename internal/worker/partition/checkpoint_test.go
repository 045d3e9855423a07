package partition

import (
	"fmt"
	"testing"
	"time"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
)

// A checkpoint is written once its position is committed, and not before: with the last
// event uncommitted, or all of them.
func TestCheckpointFollowsCommit(t *testing.T) {
	t.Parallel()
	set := &Set{config: Config{
		Dir: t.TempDir(), Compaction: simulatedConfigs()[0], Streams: &topology.Streams{},
		CheckpointEvery: time.Hour, CheckpointEvents: 1,
	}}
	set.install(partitions.New(1))
	set.config.Streams.Log.Created = time.Unix(1, 0)
	p := newPartition(set, 0)
	if err := p.file.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.file.close(); err != nil {
			t.Error(err)
		}
	})
	p.ledgers.begin(p.file.ledgers(), position{})
	for seq := measure.Seq(1); seq <= 3; seq++ {
		data := fmt.Sprintf(`{"v":1,"turn":%d,"messages":[{"role":"user","content":"go on"}]}`, seq)
		e := decide.Event{
			Location: events.Location{Kind: events.KindTurn, Address: events.Address{Tenant: "t", Session: "s"}},
			Seq:      seq, Data: []byte(data),
		}
		if g, _, _, err := p.ledgers.decide(e, time.Unix(int64(seq), 0)); err != nil || len(g.outcomes) > 0 {
			t.Fatal(g.outcomes, err)
		}
	}
	if err := p.checkpointer.collectDue(0); err != nil {
		t.Fatal(err)
	}
	if got := p.checkpointer.wanted(); got != 3 {
		t.Fatalf("the checkpoint waits for a commit at %d, not 3", got)
	}
	for committed, want := range []uint64{0, 0, 0, 3} {
		p.checkpointer.save(t.Context(), measure.Seq(committed))
		p.checkpointer.wait()
		if got := p.file.position().Cursor; got != want {
			t.Errorf("committed up to %d, the file is at %d, not %d", committed, got, want)
		}
	}
}
