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
type history struct {
	recorded // without outcomes
	end      broker.Stored
	setbacks []setback
}

// setback is a marker that lies behind an earlier one: the log had lost its end,
// and what was told before about events behind the marker is void.
type setback struct {
	at uint64 // of the marker, in OUTCOMES
	to compaction.Seq
}

// void reports whether an outcome stored at a sequence of OUTCOMES was told about
// an event that is gone.
func (h *history) void(at uint64, cause compaction.Seq) bool {
	return slices.ContainsFunc(h.setbacks, func(s setback) bool { return at < s.at && cause > s.to })
}

// readHistory reads the markers of a partition.
func readHistory(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, partition int) (*history, error) {
	h := &history{}
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
			h.setbacks = append(h.setbacks, setback{seq, at})
		}
		last = compaction.Seq(marker.Cursor)
		h.pass(marker)
		return nil
	})
}

// configs brings back configs by their hash.
type configs struct {
	js       jetstream.JetStream
	counters []compaction.Counter
	known    map[string]*compaction.Config
	unknown  map[string]error
}

func newConfigs(js jetstream.JetStream, counters []compaction.Counter) *configs {
	return &configs{js, counters, map[string]*compaction.Config{}, map[string]error{}}
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
func (c *configs) get(ctx context.Context, hash string) (*compaction.Config, error) {
	if found, ok := c.known[hash]; ok {
		return found, nil
	}
	if err, ok := c.unknown[hash]; ok {
		return nil, err
	}
	text, err := broker.GetConfig(ctx, c.js, hash)
	if err != nil && !errors.Is(err, broker.ErrNoConfig) {
		return nil, err
	}
	if err == nil {
		var found *compaction.Config
		if found, err = compaction.ParseConfig(text, c.counters...); err == nil {
			c.known[hash] = found
			return found, nil
		}
	}
	c.unknown[hash] = &unknownConfigError{hash, err}
	return nil, c.unknown[hash]
}
