package workertest

import (
	"context"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize"
)

// Summarizing returns an environment whose sessions are summarized.
func Summarizing(t *testing.T, s summarize.Summarizer) *Env {
	env := New(t, t.TempDir())
	env.Config, env.Summarizer = NewConfig(t, policy.Default()), s
	return env
}

// SummarizerFunc is a function as a summarizer.
type SummarizerFunc func(context.Context, summarize.Input) (*events.Summary, error)

// Summarize calls f.
func (f SummarizerFunc) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	return f(ctx, in)
}

// Fill publishes turns of a session until it has a job in a lane.
func (env *Env) Fill(session string, lane events.Lane) {
	env.T.Helper()
	env.FillFor("default", session, lane, func(n int) []byte { return BigTurn(n, 8_000, 1_200) })
}

// FillFor is Fill for a tenant, with turns of its own.
func (env *Env) FillFor(tenant, session string, lane events.Lane, turn func(n int) []byte) {
	env.T.Helper()
	for n := 1; n <= 60; n++ {
		env.PublishFor(tenant, events.KindTurn, session, turn(n))
		env.AwaitDecided()
		if slices.Contains(env.jobs(tenant, session), lane) {
			return
		}
	}
	env.T.Fatalf("no %s job in 60 turns, but %v", lane, env.jobs(tenant, session))
}

// jobs lists the lanes of a session's jobs.
func (env *Env) jobs(tenant, session string) []events.Lane {
	env.T.Helper()
	var out []events.Lane
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, "out.*.job.*."+tenant+"."+session, 1, 0, func(m jetstream.Msg, _ uint64) error {
		_, lane, err := events.ParseJob(m.Subject())
		out = append(out, lane)
		return err
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return out
}
