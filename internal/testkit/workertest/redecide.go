package workertest

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
)

// Redecided decides the log again under the config and returns the outcomes, in the order of their
// events. It reads no recorded outcome.
func (env *Env) Redecided() (out []Outcome) {
	env.T.Helper()
	ctx := env.T.Context()
	streams, err := topology.Describe(ctx, env.JS)
	if err != nil {
		env.T.Fatal(err)
	}
	d, renderer := decide.New(env.Config), payload.NewRenderer(env.Conn, 64<<20)
	err = stream.ReadStream(ctx, env.JS, topology.LogStream, "log.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		e, _, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		outs, text := d.Process(e)
		if text {
			renderer.Put(e)
		}
		p := streams.Partitions.At(e.Address, uint64(e.Seq))
		for _, o := range outs {
			data, _, err := renderer.Outcome(ctx, nil, e.OutcomeAddress(), o, connect.MaxPayload(env.Conn))
			if err != nil {
				return err
			}
			out = append(out, NewOutcome(decide.SubjectOf(p, e.OutcomeAddress(), o), data))
		}
		return nil
	})
	if err != nil {
		env.T.Fatalf("decide the log again: %v", err)
	}
	return out
}

// WantRedecided compares the stored outcomes with those decided again from the log.
func (env *Env) WantRedecided() {
	env.T.Helper()
	if diff := cmp.Diff(BySession(env.Redecided()), env.OutcomesBySession()); diff != "" {
		env.T.Errorf("stored outcomes differ from those of the log (-log +stored):\n%s", diff)
	}
}

// OnlyConfig reads the one config that is stored.
func (env *Env) OnlyConfig() *compaction.Config {
	env.T.Helper()
	var found []*compaction.Config
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, events.Config("*"), 1, 0, func(m jetstream.Msg, _ uint64) error {
		if string(m.Data()) == PlantedText {
			return nil
		}
		c, err := stored.ReadConfig(m.Data())
		if err == nil && !slices.ContainsFunc(found, func(f *compaction.Config) bool { return f.Hash() == c.Hash() }) {
			found = append(found, c) // workers that start together may store it twice
		}
		return err
	})
	if err != nil {
		env.T.Fatal(err)
	}
	if len(found) != 1 {
		env.T.Fatalf("%d configs are stored", len(found))
	}
	return found[0]
}

// PlantedText is a text that is none of a config.
const PlantedText = "{}"
