// Command decideagain decides a log again as far as workers with the rules of this tree decided it,
// and applies the rest as recorded, as such a worker does. TestFaultMixedVersions builds it in the
// trees of two versions. It prints how many events were decided again, how many outcomes were
// compared, each outcome that differs, and how often one version followed the other.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
	"compactd/internal/worker/payload"
)

func main() {
	found := result{Different: []string{}}
	if err := found.run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

type result struct {
	Rules     int      `json:"rules"`
	Events    int      `json:"events"`
	Outcomes  int      `json:"outcomes"`
	Different []string `json:"different"`
	Changes   int      `json:"changes"`
}

func (r *result) run(ctx context.Context, url string) error {
	r.Rules = compaction.RulesVersion
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return err
	}
	own, err := ownConfig(ctx, js)
	if err != nil {
		return err
	}
	for id := range streams.Partitions.Count() {
		p := partition{nc: nc, js: js, id: id, own: own, decider: decide.New(own), texts: payload.NewRenderer(nc, 64<<20), result: r}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("partition %d: %w", id, err)
		}
	}
	return nil
}

// ownConfig is the one stored config that has the rules of this tree.
func ownConfig(ctx context.Context, js jetstream.JetStream) (own *compaction.Config, err error) {
	err = stream.ReadStream(ctx, js, topology.OutcomesStream, events.Config("*"), 1, 0, func(m jetstream.Msg, _ uint64) error {
		c, err := stored.ReadConfig(m.Data())
		switch {
		case err != nil: // of other rules
		case own != nil && own.Hash() != c.Hash():
			return fmt.Errorf("configs %s and %s have rules %d", own.Hash(), c.Hash(), compaction.RulesVersion)
		default:
			own = c
		}
		return nil
	})
	if err == nil && own == nil {
		err = fmt.Errorf("no config has rules %d", compaction.RulesVersion)
	}
	return own, err
}

type partition struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	id       int
	own      *compaction.Config
	decider  *decide.Decider
	texts    *payload.Renderer
	recorded map[compaction.Seq][]message // by event
	*result
}

type message struct{ subject, data string }

func (p *partition) run(ctx context.Context) error {
	end, err := commit.LastMarker(ctx, p.nc, p.id)
	if err != nil || end.Cursor == 0 {
		return err
	}
	index, err := outcomelog.ReadIndex(ctx, p.js, p.id, 1, end.Seq, false, func(commit.Foreign) {})
	if err != nil {
		return err
	}
	if err := p.readRecorded(ctx, end.Seq); err != nil {
		return err
	}
	before := ""
	return stream.ReadStream(ctx, p.js, topology.LogStream, events.LogFilter(p.id), 1, end.Cursor, func(m jetstream.Msg, _ uint64) error {
		e, _, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		config := index.ConfigAt(e.Seq)
		if before != "" && before != config {
			p.Changes++
		}
		if before = config; config != p.own.Hash() {
			return p.decider.ApplyRecorded(e, index.Outcomes[e.Seq])
		}
		return p.decide(ctx, e)
	})
}

func (p *partition) readRecorded(ctx context.Context, upTo uint64) error {
	p.recorded = map[compaction.Seq][]message{}
	return stream.ReadStream(ctx, p.js, topology.OutcomesStream, events.OutcomeFilter(p.id), 1, upTo, func(m jetstream.Msg, _ uint64) error {
		if _, err := events.ParseOutcome(m.Subject()); err != nil {
			return nil // of a marker alone
		}
		var body struct {
			Cause events.Cause `json:"caused_by"`
		}
		err := json.Unmarshal(m.Data(), &body)
		seq := compaction.Seq(body.Cause.Seq)
		p.recorded[seq] = append(p.recorded[seq], message{m.Subject(), string(m.Data())})
		return err
	})
}

// decide decides an event and compares with the recorded outcomes.
func (p *partition) decide(ctx context.Context, e decide.Event) error {
	p.Events++
	outs, _ := p.decider.Process(e)
	want := p.recorded[e.Seq]
	p.Outcomes += len(want)
	if len(outs) != len(want) {
		p.Different = append(p.Different, fmt.Sprintf("%s %s at %d: %d outcomes decided, %d recorded", e.Kind, e.Address, e.Seq, len(outs), len(want)))
		return nil
	}
	for i, o := range outs {
		data, _, err := p.texts.Outcome(ctx, nil, e.OutcomeAddress(), o, connect.MaxPayload(p.nc))
		if err != nil {
			return err
		}
		got := message{decide.SubjectOf(p.id, e.OutcomeAddress(), o), string(data)}
		if got != want[i] {
			p.Different = append(p.Different, fmt.Sprintf("%s %s at %d:\ndecided  %s %.600s\nrecorded %s %.600s",
				e.Kind, e.Address, e.Seq, got.subject, got.data, want[i].subject, want[i].data))
		}
	}
	return nil
}
