package outcomelog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Index holds the records of a partition's events in OUTCOMES: their outcomes and configs. The caller
// adds outcomes and markers in their order.
type Index struct {
	Outcomes map[measure.Seq][]compaction.Outcome
	Last     measure.Seq // highest key of Outcomes
	epochs   []configEpoch
	Chains   map[measure.Seq]uint64 // hashes at the markers; nil if not needed
	Erased   measure.Seq            // last session.forget: the log may lack events of the hashes before it
	Lost     bool                   // the log lost a later one: it may lack events of all hashes since Erased
	epoch    uint64
}

// configEpoch is a config and the last event of its epoch.
type configEpoch struct {
	to   measure.Seq
	hash string
}

// ReadIndex reads the commits of a partition in OUTCOMES from one sequence to another, both
// included. chains includes the hashes at the markers. foreign receives messages that belong to no
// commit. An unreadable outcome in a commit is an error.
func ReadIndex(ctx context.Context, js jetstream.JetStream, partition int, from, upTo uint64, chains bool, foreign func(commit.Foreign)) (*Index, error) {
	r := &Index{}
	if chains {
		r.Chains = map[measure.Seq]uint64{}
	}
	all := stream.Selection{From: from, UpTo: upTo}
	return r, readCommits(ctx, js, partition, all, foreign, func(c commit.Commit[jetstream.Msg]) error {
		for _, m := range c.Messages {
			at, ok := followsEvent(m.Subject())
			if !ok {
				continue
			}
			if err := r.Add(at.Kind, m.Data()); err != nil {
				return fmt.Errorf("read %s: %w", m.Subject(), err)
			}
		}
		if c.Marker != nil {
			r.ApplyMarker(c.Marker.Marker)
		}
		return nil
	})
}

// readCommits calls fn with the commits of a partition within a part of OUTCOMES.
func readCommits(ctx context.Context, js jetstream.JetStream, partition int, part stream.Selection, foreign func(commit.Foreign), fn func(commit.Commit[jetstream.Msg]) error) error {
	part.Stream, part.Filters, part.Foreign = topology.OutcomesStream, []string{events.OutcomeFilter(partition)}, true
	newest, err := commit.MarkerAt(ctx, js.Conn(), partition, max(part.From, 1)-1)
	if err != nil {
		return err
	}
	a := commit.Assembler[jetstream.Msg]{
		Partition: partition, Newest: newest, From: part.From, Stored: commit.IsStored(ctx, js.Conn()), Commit: fn, Foreign: foreign,
	}
	if newest.Seq > 0 { // a part without one may begin after a message of the parent partition
		a.Behind = max(part.From, 1) - 1
	}
	if err := stream.Read(ctx, js, part, func(m jetstream.Msg, seq uint64) error { return a.Add(m.Headers(), seq, m) }); err != nil {
		return err
	}
	return a.End()
}

// followsEvent parses the subject of an outcome. It returns false for a marker alone, and for a session.erased,
// which no event caused.
func followsEvent(subject string) (events.Location, bool) {
	at, err := events.ParseOutcome(subject)
	return at, err == nil && at.Kind != events.KindErased
}

// Add adds one outcome.
func (r *Index) Add(k events.Kind, data []byte) error {
	o, cause, err := decodeOutcome(k, data)
	if err != nil {
		return err
	}
	if r.Outcomes == nil {
		r.Outcomes = map[measure.Seq][]compaction.Outcome{}
	}
	if r.Outcomes[cause] = append(r.Outcomes[cause], o); k == events.KindForgotten {
		r.Erased, r.Lost = cause, false // the hash begins again
	}
	r.Last = max(r.Last, cause)
	return nil
}

// ApplyMarker applies a marker. A marker with a lower position than an earlier one shows a truncation of
// the log: the outcomes in between belong to lost events.
func (r *Index) ApplyMarker(m commit.Marker) {
	if m.Before != "" { // stands in for the previous marker, which may be erased
		r.ApplyMarker(commit.Marker{Cursor: m.Cursor, Epoch: r.epoch, Config: m.Before})
	}
	cursor, n := measure.Seq(m.Cursor), len(r.epochs)
	taken := m.Epoch > r.epoch && n > 0 && !m.Taken // a marker with Taken has Before, or the same config
	r.epoch = m.Epoch
	switch {
	case taken && cursor > r.epochs[n-1].to: // decided by the former owner, whose last markers were erased
		r.epochs[n-1].to = cursor
	case n == 0 || cursor > r.epochs[n-1].to && m.Config != r.epochs[n-1].hash:
		r.epochs = append(r.epochs, configEpoch{cursor, m.Config})
	case cursor > r.epochs[n-1].to:
		r.epochs[n-1].to = cursor
	}
	if r.Chains != nil {
		maps.DeleteFunc(r.Chains, func(seq measure.Seq, _ uint64) bool { return seq > cursor })
		r.Chains[cursor] = cmp.Or(m.Chain, r.Chains[cursor])
	}
	if r.Last > cursor {
		maps.DeleteFunc(r.Outcomes, func(seq measure.Seq, outs []compaction.Outcome) bool {
			forget := slices.ContainsFunc(outs, func(o compaction.Outcome) bool { return o.Kind == events.KindForgotten })
			r.Lost = r.Lost || forget && seq > cursor
			return seq > cursor
		})
		r.Last = cursor
	}
	i := r.epochAt(cursor) // the last one, except after a rollback
	r.epochs[i].to = cursor
	r.epochs = r.epochs[:i+1]
}

// epochAt returns the index of an event's config epoch; len(r.epochs) after the last marker.
func (r *Index) epochAt(seq measure.Seq) int {
	i, _ := slices.BinarySearchFunc(r.epochs, seq, func(g configEpoch, seq measure.Seq) int { return cmp.Compare(g.to, seq) })
	return i
}

// ConfigAt returns the hash of the config of an event's decision, or "" after the last marker.
func (r *Index) ConfigAt(seq measure.Seq) string {
	if i := r.epochAt(seq); i < len(r.epochs) {
		return r.epochs[i].hash
	}
	return ""
}

// decodeOutcome reads an outcome without its messages.
func decodeOutcome(k events.Kind, data []byte) (compaction.Outcome, measure.Seq, error) {
	body, err := events.DecodeOutcome(k, data)
	if err != nil {
		return compaction.Outcome{}, 0, err
	}
	var cause events.Cause
	switch b := body.(type) {
	case *events.Compacted:
		cause, b.Messages = b.CausedBy, nil
	case *events.BudgetChanged:
		cause = b.CausedBy
	case *events.Rejected:
		cause = b.CausedBy
	case *events.Forgotten:
		cause = b.CausedBy
	case *events.Job:
		cause = b.CausedBy
	}
	return compaction.Outcome{Kind: k, Body: body}, measure.Seq(cause.Seq), nil
}
