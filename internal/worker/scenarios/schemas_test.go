package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/service"
)

// validStream validates the messages of a stream, and counts them by kind. [workertest.BadTurn] may
// be invalid.
func validStream(env *workertest.Env, from, filter string, kind func(string) (events.Kind, error)) map[string]int {
	env.T.Helper()
	seen := map[string]int{}
	err := stream.ReadStream(env.T.Context(), env.JS, from, filter, 1, 0, func(m jetstream.Msg, _ uint64) error {
		k, err := kind(m.Subject())
		if err != nil || len(m.Data()) == 0 || strings.HasPrefix(m.Subject(), "out.config.") {
			return nil //nolint:nilerr // a marker, or a config: no payload of the contract
		}
		seen[string(k)]++
		if err := schematest.Validate(string(k), m.Data()); err != nil && string(m.Data()) != workertest.BadTurn {
			env.T.Errorf("%s: %v: %.300s", m.Subject(), err, m.Data())
		}
		return nil
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return seen
}

// Every message in the streams and every answer of the service is valid by its schema: events of
// all kinds that a worker takes, and all outcomes that it publishes.
func TestPayloadsMatchSchemas(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Config, env.Summarizer = workertest.NewConfig(t, policy.Default()), extract.New()
	summarized := make(chan observe.SummaryDone, 64)
	env.Run("a", observe.Listener{SummaryDone: func(e observe.SummaryDone) { summarized <- e }})
	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
	for n := 1; n <= 24; n++ {
		env.Publish(events.KindTurn, "s2", workertest.Turn(n))
	}
	env.Publish(events.KindTurn, "s3", workertest.CallsTurn(1, "read_file:/a.go", "write_file:/b.go"))
	last := env.Publish(events.KindTurn, "s3", workertest.CallsTurn(3, "read_file:/a.go"))
	workertest.Next(t, summarized, "summary")
	env.AwaitDecided()
	erased, err := env.Conn.SubscribeSync(events.Published(events.KindErased, events.Address{Tenant: "default", Session: "s1"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		kind          events.Kind
		session, data string
	}{
		{events.KindTurn, "s3", workertest.BadTurn},
		{events.KindCompact, "s2", `{"id":"compact-1","focus":"the parser","policy":{"target":0.5}}`},
		{events.KindRewind, "s2", `{"id":"back-1","generation":0}`},
		{events.KindOverflow, "s2", `{"id":"o1","status":400,"error":"prompt is too long: 20000 tokens > 16000 maximum"}`},
		{events.KindIdle, "s3", fmt.Sprintf(`{"v":1,"id":"i1","since":%d}`, last)},
		{events.KindBranch, "s3", `{"v":1,"id":"b1","branch":"s4"}`},
		{events.KindEnd, "s3", `{"id":"e1"}`},
		{events.KindForget, "s1", `{"id":"f1"}`},
	} {
		env.Publish(e.kind, e.session, []byte(e.data))
	}
	if _, err := erased.NextMsg(workertest.WaitLimit); err != nil {
		t.Fatal(err)
	}
	env.AwaitDecided()
	log := validStream(env, topology.LogStream, "log.>", func(subject string) (events.Kind, error) {
		at, err := events.ParseLog(subject)
		return at.Kind, err
	})
	outcomes := validStream(env, topology.OutcomesStream, "out.>", func(subject string) (events.Kind, error) {
		at, err := events.ParseOutcome(subject)
		return at.Kind, err
	})
	for _, k := range events.LogKinds {
		if log[string(k)] == 0 {
			t.Errorf("no %s in the log: %v", k, log)
		}
	}
	for _, k := range append(slices.Clone(events.OutcomeKinds), events.KindErased, events.KindJob) {
		if outcomes[string(k)] == 0 {
			t.Errorf("no %s among the outcomes: %v", k, outcomes)
		}
	}
	validAnswers(env, "s2")
}

// validAnswers sends every kind of request about a session, and validates requests and answers.
func validAnswers(env *workertest.Env, session string) {
	env.T.Helper()
	for endpoint, more := range map[string][]string{
		"check":    {``, `,"messages":[{"role":"user","content":"x"}],"attachments":[{"bytes":7}]`, `,"tokens":-1`},
		"context":  {``, `,"generation":0`, `,"page":99`},
		"files":    {``},
		"history":  {``},
		"outcome":  {`,"seq":1`, fmt.Sprintf(`,"seq":%d`, lastOf(env, session)), `,"seq":0`},
		"recall":   {`,"turn":1`, `,"text":"word"`, `,"turn":99`},
		"sessions": {``, `,"limit":1`},
		"stats":    {``, `,"provider":"openai","model":"gpt-4"`},
		"health":   {``},
	} {
		at := slices.IndexFunc(service.Operations(), func(o service.Operation) bool { return o.Name == endpoint })
		request, answers := service.Operations()[at].Request(), service.Operations()[at].Responses
		for _, m := range more {
			in := fmt.Sprintf(`{"session":%q%s}`, session, m)
			reply, err := env.Conn.Request("compactd."+endpoint, []byte(in), workertest.WaitLimit)
			if err != nil {
				env.T.Fatal(err)
			}
			names := answers
			if reply.Header.Get(micro.ErrorCodeHeader) != "" {
				names = []string{"error"}
			} else if request != "" {
				if err := schematest.Validate(request, []byte(in)); err != nil {
					env.T.Errorf("%s was answered: %v", in, err)
				}
			}
			valid := slices.ContainsFunc(names, func(name string) bool { return schematest.Validate(name, reply.Data) == nil })
			if !valid {
				env.T.Errorf("%s %s: none of %v: %.300s", endpoint, in, names, reply.Data)
			}
		}
	}
}

// lastOf is the sequence of the last event of a session.
func lastOf(env *workertest.Env, session string) uint64 {
	env.T.Helper()
	m, err := stream.LastOf(env.T.Context(), env.Conn, topology.LogStream, "log.*.*.default."+session)
	if err != nil {
		env.T.Fatal(err)
	}
	return m.Seq
}
