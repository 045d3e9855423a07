package erase

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Erasure is a session whose erasure was decided.
type Erasure struct {
	Partition int
	events.Forgotten
	events.Address
}

// Pending lists the erasures of a partition that were published as decided and
// not as done, the last of each session, in their order.
func Pending(ctx context.Context, js jetstream.JetStream, partition int) ([]Erasure, error) {
	any := events.Address{Tenant: "*", Session: "*"}
	_, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.OutcomesStream, jsapi.GetRequest{LastFor: events.Outcome(partition, events.KindForgotten, any)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil // as nearly always: it costs one request
	}
	if err != nil {
		return nil, fmt.Errorf("look for erasures of partition %d: %w", partition, err)
	}
	done := map[events.Address]uint64{}
	err = stream.ReadStream(ctx, js, topology.OutcomesStream, events.Outcome(partition, events.KindErased, any), 1, 0, func(m jetstream.Msg, _ uint64) error {
		var e events.Erased
		if at, ok := readOutcome(m, &e); ok {
			done[at] = max(done[at], e.Seq)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Erasure
	err = stream.ReadStream(ctx, js, topology.OutcomesStream, events.Outcome(partition, events.KindForgotten, any), 1, 0, func(m jetstream.Msg, _ uint64) error {
		e := Erasure{Partition: partition}
		var ok bool
		if e.Address, ok = readOutcome(m, &e.Forgotten); ok && e.Seq > done[e.Address] {
			out = append(dropOf(out, e.Address), e)
		}
		return nil
	})
	return out, err
}

// dropOf removes the erasure of a session: a later one does its work too.
func dropOf(es []Erasure, a events.Address) []Erasure {
	for i := range es {
		if es[i].Address == a {
			return append(es[:i:i], es[i+1:]...)
		}
	}
	return es
}

// readOutcome reads an outcome; false for one that no worker can have written.
func readOutcome(m jetstream.Msg, body any) (events.Address, bool) {
	at, err := events.ParseOutcome(m.Subject())
	return at.Address, err == nil && events.Unmarshal(m.Data(), body) == nil
}

// Erase overwrites what the streams hold of a session: the events before its
// session.forget, and the outcomes and jobs before the answer to that. It returns
// how many they were. After an error it may be called again, and goes on.
//
// The server overwrites a message in its block and rewrites the block, so this
// takes some 10 ms for each. Should the server itself crash within such a write, one
// message may stay in its block without being readable any more, until the block
// goes; that cannot be detected.
func Erase(ctx context.Context, js jetstream.JetStream, e Erasure) (outcomes, log int64, err error) {
	any := events.Kind("*")
	answer, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.OutcomesStream, jsapi.GetRequest{LastFor: events.Outcome(e.Partition, events.KindForgotten, e.Address)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		answer, err = &jsapi.StoredMsg{}, nil // it has aged away, and all before it
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look for session.forgotten: %w", err)
	}
	for _, filter := range []string{events.Outcome(e.Partition, any, e.Address), events.JobSubject(e.Partition, events.Lane(any), e.Address)} {
		n, err := overwrite(ctx, js, topology.OutcomesStream, filter, answer.Seq)
		if outcomes += n; err != nil {
			return outcomes, 0, err
		}
	}
	log, err = overwrite(ctx, js, topology.LogStream, events.Logged(e.Partition, any, e.Address), e.Seq)
	return outcomes, log, err
}

// overwrite removes what filter selects of a stream before a sequence.
func overwrite(ctx context.Context, js jetstream.JetStream, name, filter string, before uint64) (n int64, err error) {
	if before <= 1 {
		return 0, nil // no bound would be all
	}
	var seqs []uint64
	all := stream.Selection{Stream: name, Filters: []string{filter}, UpTo: before - 1, HeadersOnly: true}
	err = stream.Read(ctx, js, all, func(_ jetstream.Msg, seq uint64) error {
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil {
		return 0, err
	}
	s, err := js.Stream(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("erase %s of %s: %w", filter, name, err)
	}
	for _, seq := range seqs {
		if err := s.SecureDeleteMsg(ctx, seq); err != nil {
			return n, fmt.Errorf("erase message %d of %s: %w", seq, name, err)
		}
		n++
	}
	return n, nil
}

// ErrErased: the session was erased meanwhile. Nothing was stored.
var ErrErased = errors.New("the session was erased")

// LastForget returns the sequence of the last session.forget of a session, 0 for
// none.
func LastForget(ctx context.Context, nc *nats.Conn, partition int, a events.Address) (uint64, error) {
	m, err := jsapi.GetFromLeader(ctx, nc, topology.LogStream, jsapi.GetRequest{LastFor: events.Logged(partition, events.KindForget, a)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for session.forget: %w", err)
	}
	return m.Seq, nil
}

// PublishUnlessErased is [stream.PublishOnce] for a session.summary, which quotes its
// session, unless a session.forget was stored since [LastForget] returned since: then
// it returns [ErrErased]. The server decides, so that no such event can follow its
// erasure.
func PublishUnlessErased(ctx context.Context, js jetstream.JetStream, m *nats.Msg, partition int, a events.Address, since uint64) (taken *stream.IDTakenError, err error) {
	m.Header.Set(jsapi.HeaderFence, fmt.Sprint(since))
	m.Header.Set(jsapi.HeaderFenceSubject, events.Logged(partition, events.KindForget, a))
	taken, err = stream.PublishOnce(ctx, js, m)
	if jsapi.HasCode(err, jsapi.CodeWrongLastSequence) {
		return nil, ErrErased
	}
	return taken, err
}
