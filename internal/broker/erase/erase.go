package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Erasure is a session whose erasure was decided.
type Erasure struct {
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
		var e Erasure
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
//
// It covers all partitions: in a log that grew a session has had several. A log that lost the session.forget issues the
// sequences before it again: events that came after the answer stay.
func Erase(ctx context.Context, js jetstream.JetStream, e Erasure) (outcomes, log int64, err error) {
	const anywhere = "out.*."
	answer, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.OutcomesStream, jsapi.GetRequest{LastFor: anywhere + string(events.KindForgotten) + "." + e.String()})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		answer, err = &jsapi.StoredMsg{}, nil // it has aged away, and all before it
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look for session.forgotten: %w", err)
	}
	for _, filter := range []string{anywhere + "*." + e.String(), anywhere + "job.*." + e.String()} {
		n, err := overwrite(ctx, js, topology.OutcomesStream, filter, answer.Seq, time.Time{})
		if outcomes += n; err != nil {
			return outcomes, 0, err
		}
	}
	until := time.Time{}
	if lost, err := e.lost(ctx, js); err != nil {
		return outcomes, 0, fmt.Errorf("look for session.forget: %w", err)
	} else if lost {
		until = answer.Time
	}
	log, err = overwrite(ctx, js, topology.LogStream, events.LoggedAnywhere("*", e.Address), e.Seq, until)
	return outcomes, log, err
}

// lost reports whether a power loss took the session.forget out of the log.
func (e Erasure) lost(ctx context.Context, js jetstream.JetStream) (bool, error) {
	m, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{Seq: e.Seq, NoHeader: true})
	if errors.Is(err, jetstream.ErrMsgNotFound) { // it may have aged away
		log, err := topology.State(ctx, js, topology.LogStream)
		return err == nil && e.Seq > log.Last, err
	}
	if err != nil {
		return false, err
	}
	return !events.Logs(m.Subject, events.Published(events.KindForget, e.Address)), nil
}

// overwrite removes what filter selects of a stream before a sequence, and up to a time unless that is zero.
func overwrite(ctx context.Context, js jetstream.JetStream, name, filter string, before uint64, until time.Time) (n int64, err error) {
	if before <= 1 {
		return 0, nil // no bound would be all
	}
	var seqs []uint64
	all := stream.Selection{Stream: name, Filters: []string{filter}, UpTo: before - 1, HeadersOnly: true}
	err = stream.Read(ctx, js, all, func(m jetstream.Msg, seq uint64) error {
		md, err := m.Metadata()
		if err == nil && (until.IsZero() || !md.Timestamp.After(until)) {
			seqs = append(seqs, seq)
		}
		return err
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

// LastForget returns the sequence of the last session.forget under one of the subjects, 0 for
// none.
func LastForget(ctx context.Context, nc *nats.Conn, subjects ...string) (seq uint64, err error) {
	for _, subject := range subjects {
		m, err := jsapi.GetFromLeader(ctx, nc, topology.LogStream, jsapi.GetRequest{LastFor: subject, NoHeader: true})
		if err == nil {
			seq = max(seq, m.Seq)
		} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, fmt.Errorf("look for session.forget: %w", err)
		}
	}
	return seq, nil
}

// LastForgetOf returns the sequence of the last session.forget of a session, 0 for none.
func LastForgetOf(ctx context.Context, nc *nats.Conn, a events.Address) (uint64, error) {
	return LastForget(ctx, nc, events.LoggedAnywhere(events.KindForget, a))
}

// PublishUnlessErased is [stream.PublishOnce] for a session.summary, which quotes its session, unless a
// session.forget was stored since [LastForgetOf] returned since: then it returns [ErrErased]. The server decides, so
// that no such event can follow its erasure; for one subject only, that of the partition which requested the summary. In
// a log that grew the session.forget may come under another one at the same moment, see [Repeat].
func PublishUnlessErased(ctx context.Context, js jetstream.JetStream, m *nats.Msg, partition int, a events.Address, since uint64) (taken *stream.IDTakenError, err error) {
	fence := events.Logged(partition, events.KindForget, a)
	under, err := LastForget(ctx, js.Conn(), fence)
	if err != nil {
		return nil, err
	}
	if last, err := LastForgetOf(ctx, js.Conn(), a); err != nil || last > since {
		return nil, cmp.Or(err, ErrErased)
	}
	m.Header.Set(jsapi.HeaderFence, fmt.Sprint(under))
	m.Header.Set(jsapi.HeaderFenceSubject, fence)
	taken, err = stream.PublishOnce(ctx, js, m)
	if jsapi.HasCode(err, jsapi.CodeWrongLastSequence) {
		return nil, ErrErased
	}
	return taken, err
}

// Repeat requests the erasure of a session once more where the summary of a job is stored behind a session.forget that
// came since: it quotes what was erased. It returns [ErrErased] when one came, repeated or not.
func Repeat(ctx context.Context, js jetstream.JetStream, a events.Address, job string, since uint64) error {
	last, err := LastForgetOf(ctx, js.Conn(), a)
	if err != nil || last <= since {
		return err
	}
	late := false
	err = stream.ReadSubject(ctx, js.Conn(), topology.LogStream, events.LoggedAnywhere(events.KindSummary, a), last+1, func(m stream.LogMessage) error {
		s, err := events.DecodeSummary(m.Data)
		late = late || err == nil && s.Job == job
		return nil
	})
	if err == nil && late {
		_, err = publishForget(ctx, js, a, "late-"+job)
	}
	return cmp.Or(err, ErrErased)
}
