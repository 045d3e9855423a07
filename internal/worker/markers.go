package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// history says how far a partition is decided, which config was in force when, and
// which outcomes are void.
type markerHistory struct {
	outcomeIndex // without outcomes
	end          broker.Stored
	rollbacks    []rollback
}

// setback is a marker that lies behind an earlier one: the log had lost its end,
// and what was told before about events behind the marker is void.
type rollback struct {
	at uint64 // of the marker, in OUTCOMES
	to compaction.Seq
}

// void reports whether an outcome stored at a sequence of OUTCOMES was told about
// an event that is gone.
func (h *markerHistory) superseded(at uint64, cause compaction.Seq) bool {
	return slices.ContainsFunc(h.rollbacks, func(s rollback) bool { return at < s.at && cause > s.to })
}

// readHistory reads the markers of a partition.
func readMarkerHistory(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, partition int) (*markerHistory, error) {
	h := &markerHistory{}
	var err error
	if h.end, err = broker.LastMarker(ctx, nc, partition); err != nil || h.end.Seq == 0 {
		return h, err
	}
	var last compaction.Seq
	all := broker.Selection{
		Stream: broker.OutcomesStream, Filters: []string{events.OutcomeFilter(partition)}, UpTo: h.end.Seq, HeadersOnly: true,
	}
	return h, broker.Read(ctx, js, all, func(m jetstream.Msg, seq uint64) error {
		marker, ok, err := broker.ParseMarker(m.Headers())
		if !ok {
			return err
		}
		if at := compaction.Seq(marker.Cursor); at < last {
			h.rollbacks = append(h.rollbacks, rollback{seq, at})
		}
		last = compaction.Seq(marker.Cursor)
		h.applyMarker(marker)
		return nil
	})
}

// configs brings back configs by their hash.
type configResolver struct {
	js         jetstream.JetStream
	counters   []compaction.Counter
	resolved   map[string]*compaction.Config
	unresolved map[string]error
}

func newConfigResolver(js jetstream.JetStream, counters []compaction.Counter) *configResolver {
	return &configResolver{js, counters, map[string]*compaction.Config{}, map[string]error{}}
}

// unknownConfigError says that a config is not to be had any more, or is not one
// that this binary can decide under.
type unknownConfigError struct {
	hash string
	err  error
}

func (e *unknownConfigError) Error() string { return fmt.Sprintf("config %s: %v", e.hash, e.err) }

func (e *unknownConfigError) Unwrap() error { return e.err }

// get returns a config, or an [*unknownConfigError].
func (c *configResolver) get(ctx context.Context, hash string) (*compaction.Config, error) {
	if found, ok := c.resolved[hash]; ok {
		return found, nil
	}
	if err, ok := c.unresolved[hash]; ok {
		return nil, err
	}
	text, err := broker.GetConfig(ctx, c.js, hash)
	if err != nil && !errors.Is(err, broker.ErrNoConfig) {
		return nil, err
	}
	if err == nil {
		var found *compaction.Config
		if found, err = compaction.ParseConfig(text, c.counters...); err == nil {
			c.resolved[hash] = found
			return found, nil
		}
	}
	c.unresolved[hash] = &unknownConfigError{hash, err}
	return nil, c.unresolved[hash]
}
