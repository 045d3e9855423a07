package service_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// outcomeOf requests what became of an event, and returns the code of a refusal beside it.
func outcomeOf(env *workertest.Env, session string, seq uint64) (out events.OutcomeResponse, refused string) {
	env.T.Helper()
	reply, err := env.Conn.Request(events.SubjectOutcome, fmt.Appendf(nil, `{"session":%q,"seq":%d}`, session, seq), workertest.WaitLimit)
	if err != nil {
		env.T.Fatal(err)
	}
	if err := json.Unmarshal(reply.Data, &out); err != nil {
		env.T.Fatalf("%v: %s", err, reply.Data)
	}
	return out, reply.Header.Get(micro.ErrorCodeHeader)
}

// Each event of a session has its own outcome, requested at once or late: taken, parked, refused
// with the reason, or answered by a compaction. An event of another session has none.
func TestOutcome(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	var first uint64
	for n := 1; n <= 6; n++ {
		seq := env.Publish(events.KindTurn, "s1", workertest.Turn(n))
		if first == 0 {
			first = seq
		}
		if got, code := outcomeOf(env, "s1", seq); code != "" || !got.Accepted || got.Code != "" || got.Through.Turn != int64(n) {
			t.Errorf("turn %d: %s %+v", n, code, got)
		}
	}
	published := func(kind events.Kind, data string) uint64 { return env.Publish(kind, "s1", []byte(data)) }
	conflict := published(events.KindTurn, `{"turn":6,"messages":[{"role":"user","content":"another"}]}`)
	bad := published(events.KindTurn, workertest.BadTurn)
	gap := published(events.KindTurn, `{"turn":9,"messages":[{"role":"user","content":"late"}]}`)
	compact := published(events.KindCompact, `{"id":"c"}`)
	overflow := published(events.KindOverflow, `{"id":"o","error":"prompt is too long: 20000 tokens > 16000 maximum"}`)
	other := published(events.KindOverflow, `{"id":"p","error":"invalid api key","status":401}`)
	rewind := published(events.KindRewind, `{"generation":0}`)
	type want struct {
		accepted bool
		code     events.Code
		reason   events.Reason
	}
	for range 2 {
		for seq, want := range map[uint64]want{
			first: {true, "", ""}, conflict: {false, events.CodeTurnConflict, ""}, bad: {false, events.CodeBadType, ""},
			gap: {true, events.CodeTurnGap, ""}, compact: {true, "", events.ReasonManual},
			overflow: {true, "", events.ReasonOverflow}, other: {false, events.CodeNotOverflow, ""}, rewind: {true, "", events.ReasonRewind},
		} {
			got, code := outcomeOf(env, "s1", seq)
			var reason events.Reason
			if got.Compaction != nil {
				reason = got.Compaction.Reason
			}
			if code != "" || got.Accepted != want.accepted || got.Code != want.code || reason != want.reason {
				t.Errorf("event %d: %s %+v, want %+v", seq, code, got, want)
			}
		}
	}
	neighbour := "s2"
	for n := 3; events.PartitionOf(events.Address{Tenant: "default", Session: neighbour}, 4) != events.PartitionOf(events.Address{Tenant: "default", Session: "s1"}, 4); n++ {
		neighbour = fmt.Sprintf("s%d", n) // of the same partition, where the event is decided
	}
	if got, code := outcomeOf(env, neighbour, first); code != string(events.CodeUnknownTurn) {
		t.Errorf("as an event of another session: %q %+v", code, got)
	}
}
