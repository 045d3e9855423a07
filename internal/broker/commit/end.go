package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// end describes the end of a partition in OUTCOMES.
type end struct {
	Stored          // the newest marker
	last    uint64  // sequence of the last message, foreign or not; 0 without one
	Foreign         // foreign messages after the marker
	all     Foreign // all foreign messages that were read
}

// The search for the newest marker reads the last firstWindow sequences of OUTCOMES, then
// windowGrowth times as many at each further attempt.
const (
	firstWindow  = 1 << 10
	windowGrowth = 16
)

// LastMarker reads the newest marker of a partition from the leader of OUTCOMES. It skips later
// messages that belong to no commit.
func LastMarker(ctx context.Context, nc *nats.Conn, partition int) (Stored, error) {
	e, err := wholeEnd(ctx, nc, partition, jsapi.Timeout)
	return e.Stored, err
}

// wholeEnd reads the end of a partition without a known marker. It checks that the newest marker
// continues the previous one.
func wholeEnd(ctx context.Context, nc *nats.Conn, partition int, timeout time.Duration) (end, error) {
	msg, err := lastMessage(ctx, nc, partition, timeout)
	if msg == nil || err != nil {
		return end{}, err
	}
	return lastCommit(ctx, nc, partition, msg.Seq)
}

// endAfter reads the end of a partition after a known marker, and checks that each later commit
// continues it. All messages up to upTo are known: the marker's, or a later foreign one. It returns
// the zero end if the marker is no longer stored.
func endAfter(ctx context.Context, nc *nats.Conn, partition int, known Stored, upTo uint64, timeout time.Duration) (end, error) {
	msg, err := lastMessage(ctx, nc, partition, timeout)
	if msg == nil || err != nil || msg.Seq < upTo {
		return end{}, err
	}
	if known.Seq > 0 {
		at := msg
		if msg.Seq != known.Seq {
			at, err = jsapi.GetWithin(ctx, nc, topology.OutcomesStream, jsapi.GetRequest{Seq: known.Seq}, timeout)
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return end{}, nil
		}
		if err != nil {
			return end{}, err
		}
		if t, _, err := parseHeader(at.Headers()); err != nil || t.Commit != known.commit {
			return end{}, nil //nolint:nilerr // another message has this sequence
		}
	}
	e, _, err := assembled(ctx, nc, partition, known, upTo, msg.Seq)
	return e, err
}

func lastMessage(ctx context.Context, nc *nats.Conn, partition int, timeout time.Duration) (*jsapi.StoredMsg, error) {
	msg, err := jsapi.GetWithin(ctx, nc, topology.OutcomesStream, jsapi.GetRequest{LastFor: events.OutcomeFilter(partition)}, timeout)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // nothing was ever stored
	}
	if err != nil {
		return nil, fmt.Errorf("read marker of partition %d: %w", partition, err)
	}
	return msg, nil
}

// lastCommit searches backwards from a sequence for the newest marker.
func lastCommit(ctx context.Context, nc *nats.Conn, partition int, last uint64) (end, error) {
	for window := uint64(firstWindow); ; window *= windowGrowth {
		before := last - min(window, last)
		e, commits, err := assembled(ctx, nc, partition, Stored{}, before, last)
		if err != nil || commits > 1 || before == 0 { // the first commit of a window has no known predecessor
			return e, err
		}
	}
}

// assembled returns the end of a partition by its messages after the sequence before, up to upTo.
// newest is the known marker before them, or zero.
func assembled(ctx context.Context, nc *nats.Conn, partition int, newest Stored, before, upTo uint64) (e end, commits int, err error) {
	e = end{Stored: newest, last: upTo}
	if before >= upTo {
		return e, 0, nil
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return end{}, 0, err
	}
	a := Assembler[struct{}]{
		Partition: partition, Newest: newest, From: before + 1, Stored: IsStored(ctx, nc),
		Foreign: func(f Foreign) { e.Foreign.Add(f); e.all.Add(f) },
		Commit: func(c Commit[struct{}]) error {
			if c.Marker != nil {
				commits++
				e.Stored, e.Foreign = *c.Marker, Foreign{}
			}
			return nil
		},
	}
	if newest.Seq > 0 {
		a.Behind = before
	}
	part := stream.Selection{
		Stream: topology.OutcomesStream, Filters: []string{events.OutcomeFilter(partition)}, From: before + 1, UpTo: upTo,
		HeadersOnly: true, Foreign: true,
	}
	err = stream.Read(ctx, js, part, func(m jetstream.Msg, seq uint64) error {
		md, err := m.Metadata()
		if err != nil {
			return err
		}
		before := e.Stored.Seq
		if err := a.Add(m.Headers(), seq, struct{}{}); err != nil {
			return err
		}
		if e.Stored.Seq != before {
			e.Stored.Time = md.Timestamp
		}
		return nil
	})
	if err == nil {
		err = a.End()
	}
	if err != nil {
		return end{}, 0, fmt.Errorf("read marker of partition %d: %w", partition, err)
	}
	return e, commits, nil
}

// MarkerAt reads the marker of a partition at a sequence of OUTCOMES. It returns the zero value if
// an erasure removed the marker.
func MarkerAt(ctx context.Context, nc *nats.Conn, partition int, seq uint64) (Stored, error) {
	if seq == 0 {
		return Stored{}, nil
	}
	msg, err := jsapi.GetFromLeader(ctx, nc, topology.OutcomesStream, jsapi.GetRequest{Seq: seq})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Stored{}, nil
	}
	if err != nil {
		return Stored{}, fmt.Errorf("read marker of partition %d: %w", partition, err)
	}
	t, ok, err := parseHeader(msg.Headers())
	if err != nil || !ok || !strings.HasPrefix(msg.Subject, strings.TrimSuffix(events.OutcomeFilter(partition), ">")) {
		return Stored{}, nil //nolint:nilerr // another message has this sequence
	}
	return Stored{Marker: t.Marker, Seq: msg.Seq, Time: msg.Time, commit: t.Commit}, nil
}

// CountForeign counts the messages of a partition after a sequence of OUTCOMES that belong to no
// commit.
func CountForeign(ctx context.Context, nc *nats.Conn, partition int, after uint64) (Foreign, error) {
	msg, err := lastMessage(ctx, nc, partition, jsapi.Timeout)
	if msg == nil || err != nil {
		return Foreign{}, err
	}
	before, err := lastCommit(ctx, nc, partition, after)
	if err != nil {
		return Foreign{}, err
	}
	e, _, err := assembled(ctx, nc, partition, before.Stored, after, msg.Seq)
	return e.all, err
}

// IsStored reports whether OUTCOMES has a message at a sequence; see [Assembler].
func IsStored(ctx context.Context, nc *nats.Conn) func(uint64) (bool, error) {
	return func(seq uint64) (bool, error) {
		_, err := jsapi.GetFromLeader(ctx, nc, topology.OutcomesStream, jsapi.GetRequest{Seq: seq, NoHeader: true})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}
