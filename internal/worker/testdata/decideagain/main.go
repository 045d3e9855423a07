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
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
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
	for _, ids := range streams.Partitions.Families() {
		f := family{nc: nc, js: js, ids: ids, table: streams.Partitions, own: own, decider: decide.New(own), texts: payload.NewRenderer(nc, 64<<20), result: r}
		if err := f.run(ctx); err != nil {
			return fmt.Errorf("partitions %v: %w", ids, err)
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

// family is a partition of the beginning, and those that it became.
type family struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	ids     []int
	table   partitions.Table
	own     *compaction.Config
	decider *decide.Decider
	texts   *payload.Renderer
	*result

	parts map[int]*partition
}

// partition is what is recorded of one.
type partition struct {
	end      commit.Stored
	index    *outcomelog.Index
	recorded map[measure.Seq][]message // by event
	before   string                    // the config of the event before
}

type message struct{ subject, data string }

func (f *family) run(ctx context.Context) error {
	f.parts = map[int]*partition{}
	last := uint64(0)
	for _, id := range f.ids {
		end, err := commit.LastMarker(ctx, f.nc, id)
		if err != nil {
			return err
		}
		p := &partition{end: end, recorded: map[measure.Seq][]message{}}
		if p.index, err = outcomelog.ReadIndex(ctx, f.js, id, 1, end.Seq, false, func(commit.Foreign) {}); err == nil {
			err = f.readRecorded(ctx, id, p)
		}
		if err != nil {
			return err
		}
		f.parts[id], last = p, max(last, end.Cursor)
	}
	return stream.Read(ctx, f.js, stream.Selection{Stream: topology.LogStream, Filters: events.LogFilters(f.ids), UpTo: last}, func(m jetstream.Msg, _ uint64) error {
		e, _, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		id := f.table.At(e.Address, uint64(e.Seq))
		p := f.parts[id]
		if uint64(e.Seq) > p.end.Cursor {
			return nil
		}
		config := p.index.ConfigAt(e.Seq)
		if p.before != "" && p.before != config {
			f.Changes++
		}
		if p.before = config; config != f.own.Hash() {
			return f.decider.ApplyRecorded(e, p.index.Outcomes[e.Seq])
		}
		return f.decide(ctx, id, e)
	})
}

func (f *family) readRecorded(ctx context.Context, id int, p *partition) error {
	return stream.ReadStream(ctx, f.js, topology.OutcomesStream, events.OutcomeFilter(id), 1, p.end.Seq, func(m jetstream.Msg, _ uint64) error {
		if _, err := events.ParseOutcome(m.Subject()); err != nil {
			return nil // of a marker alone
		}
		var body struct {
			Cause events.Cause `json:"caused_by"`
		}
		err := json.Unmarshal(m.Data(), &body)
		seq := measure.Seq(body.Cause.Seq)
		p.recorded[seq] = append(p.recorded[seq], message{m.Subject(), string(m.Data())})
		return err
	})
}

// decide decides an event and compares with the outcomes that its partition recorded.
func (f *family) decide(ctx context.Context, id int, e decide.Event) error {
	f.Events++
	outs, _ := f.decider.Process(e)
	want := f.parts[id].recorded[e.Seq]
	f.Outcomes += len(want)
	if len(outs) != len(want) {
		f.Different = append(f.Different, fmt.Sprintf("%s %s at %d: %d outcomes decided, %d recorded", e.Kind, e.Address, e.Seq, len(outs), len(want)))
		return nil
	}
	for i, o := range outs {
		data, _, err := f.texts.Outcome(ctx, nil, e.OutcomeAddress(), o, connect.MaxPayload(f.nc))
		if err != nil {
			return err
		}
		got := message{decide.SubjectOf(id, e.OutcomeAddress(), o), string(data)}
		if got != want[i] {
			f.Different = append(f.Different, fmt.Sprintf("%s %s at %d:\ndecided  %s %.600s\nrecorded %s %.600s",
				e.Kind, e.Address, e.Seq, got.subject, got.data, want[i].subject, want[i].data))
		}
	}
	return nil
}
