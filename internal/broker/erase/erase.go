package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Erasure is the decided erasure of a session.
type Erasure struct {
	events.Forgotten
	events.Address
}

// anySession matches the address of any session in a filter.
var anySession = events.Address{Tenant: "*", Session: "*"}

// Pending lists the erasures of a partition that were published as decided but
// not as done: the last of each session, in their order.
func Pending(ctx context.Context, js jetstream.JetStream, partition int) (out []Erasure, err error) {
	decided, done := events.Outcome(partition, events.KindForgotten, anySession), events.Outcome(partition, events.KindErased, anySession)
	_, err = jsapi.GetFromLeader(ctx, js.Conn(), topology.OutcomesStream, jsapi.GetRequest{LastFor: decided})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil // the common case costs one request
	}
	if err != nil {
		return nil, fmt.Errorf("look for erasures of partition %d: %w", partition, err)
	}
	all := stream.Selection{Stream: topology.OutcomesStream, Filters: []string{decided, done}}
	return out, stream.Read(ctx, js, all, func(m jetstream.Msg, _ uint64) error {
		var e Erasure
		at, ok := readOutcome(m, &e.Forgotten) // a session.erased has these fields too
		if !ok {
			return nil
		}
		e.Address = at.Address
		decided := at.Kind == events.KindForgotten // it does the work of one before too, even of a later event that was lost
		out = slices.DeleteFunc(out, func(o Erasure) bool { return o.Address == e.Address && (decided || o.CausedBy == e.CausedBy) })
		if decided {
			out = append(out, e)
		}
		return nil
	})
}

// readOutcome reads an outcome; false if no worker can have written it.
func readOutcome(m jetstream.Msg, body any) (events.Location, bool) {
	at, err := events.ParseOutcome(m.Subject())
	return at, err == nil && codec.Unmarshal(m.Data(), body) == nil
}

// Erase overwrites a session in the streams: the events before its session.forget, and the outcomes
// and jobs before its session.forgotten. It returns their numbers. After an error call it again: it
// continues.
//
// The server overwrites a message in its block and rewrites the block, which takes some 10 ms per
// message. If the server crashes during such a write, a message may remain in its block, unreadable,
// until the block is removed; that cannot be detected.
//
// Erase covers all partitions: in a log that grew, a session may have had several. A log that lost the
// session.forget assigns the sequences before it again; then Erase keeps events stored after the
// session.forgotten.
//
// A former partition of the session continues from its newest marker. If a message of the session has it, Erase
// overwrites everything else and returns [ErrNewest].
func Erase(ctx context.Context, js jetstream.JetStream, e Erasure) (outcomes, log int64, err error) {
	const anywhere = "out.*."
	answer, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.OutcomesStream, jsapi.GetRequest{LastFor: anywhere + string(events.KindForgotten) + "." + e.String()})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		answer, err = &jsapi.StoredMsg{}, nil // it has expired, and everything before it
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look for session.forgotten: %w", err)
	}
	own, _ := events.ParseOutcome(answer.Subject) // its newest marker is the answer's, or later
	markers, held := newestMarkers{ctx, js.Conn(), map[int]uint64{own.Partition: answer.Seq}}, false
	for _, filter := range []string{anywhere + "*." + e.String(), anywhere + "job.*." + e.String()} {
		n, err := overwrite(ctx, js, topology.OutcomesStream, filter, answer.Seq, func(m jetstream.Msg, md *jetstream.MsgMetadata) (bool, error) {
			newest, err := markers.has(m.Subject(), md.Sequence.Stream)
			held = held || newest
			return !newest, err
		})
		if outcomes += n; err != nil {
			return outcomes, 0, err
		}
	}
	until := time.Time{}
	if lost, err := e.lost(ctx, js); err != nil {
		return outcomes, 0, fmt.Errorf("look for session.forget: %w", err)
	} else if lost {
		until = answer.Time
		var last events.Forgotten
		if codec.Unmarshal(answer.Data, &last) != nil || last.Seq != e.Seq { // the erasure of a later one overwrites the events
			e.Seq = 0
		}
	}
	log, err = overwrite(ctx, js, topology.LogStream, events.LoggedAnywhere("*", e.Address), e.Seq, func(_ jetstream.Msg, md *jetstream.MsgMetadata) (bool, error) {
		return until.IsZero() || !md.Timestamp.After(until), nil
	})
	if err == nil && held {
		err = ErrNewest
	}
	return outcomes, log, err
}

// ErrNewest: an outcome of the session has the newest marker of another partition. Call again after the next commit
// of that partition.
var ErrNewest = errors.New("an outcome of the session is the last one of a former partition, which has to commit first")

// newestMarkers finds the newest markers of partitions, once for each.
type newestMarkers struct {
	ctx  context.Context //nolint:containedctx // of one call
	nc   *nats.Conn
	seqs map[int]uint64
}

// has reports whether the message at a sequence of OUTCOMES has the newest marker of its partition.
func (n newestMarkers) has(subject string, seq uint64) (bool, error) {
	at, err := events.ParseOutcome(subject)
	if err != nil {
		return false, nil //nolint:nilerr // no worker wrote it
	}
	newest, known := n.seqs[at.Partition]
	if !known {
		m, err := commit.LastMarker(n.ctx, n.nc, at.Partition)
		if err != nil {
			return false, err
		}
		newest = m.Seq
		n.seqs[at.Partition] = newest
	}
	return newest == seq, nil
}

// lost reports whether a power loss removed the session.forget from the log.
func (e Erasure) lost(ctx context.Context, js jetstream.JetStream) (bool, error) {
	m, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{Seq: e.Seq, NoHeader: true})
	if errors.Is(err, jetstream.ErrMsgNotFound) { // it may have expired
		log, err := topology.State(ctx, js, topology.LogStream)
		return err == nil && e.Seq > log.Last, err
	}
	if err != nil {
		return false, err
	}
	return !events.Logs(m.Subject, events.Published(events.KindForget, e.Address)), nil
}

// overwrite overwrites the messages of a stream that match filter before a sequence, and that erases selects.
func overwrite(ctx context.Context, js jetstream.JetStream, name, filter string, before uint64, erases func(jetstream.Msg, *jetstream.MsgMetadata) (bool, error)) (n int64, err error) {
	if before <= 1 {
		return 0, nil // UpTo 0 would select all messages
	}
	var seqs []uint64
	all := stream.Selection{Stream: name, Filters: []string{filter}, UpTo: before - 1, HeadersOnly: true}
	err = stream.Read(ctx, js, all, func(m jetstream.Msg, seq uint64) error {
		md, err := m.Metadata()
		if err != nil {
			return err
		}
		yes, err := erases(m, md)
		if yes {
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

// ErrErased: the session was erased. Nothing was stored.
var ErrErased = errors.New("the session was erased")

// LastForget returns the sequence of the last session.forget under one of the subjects, or 0.
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

// LastDecided returns the sequence of the session.forget that a partition decided last, or 0.
func LastDecided(ctx context.Context, nc *nats.Conn, partition int) (uint64, error) {
	m, err := jsapi.GetFromLeader(ctx, nc, topology.OutcomesStream, jsapi.GetRequest{LastFor: events.Outcome(partition, events.KindForgotten, anySession)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for erasures of partition %d: %w", partition, err)
	}
	var e events.Forgotten
	if codec.Unmarshal(m.Data, &e) != nil {
		return math.MaxUint64, nil //nolint:nilerr // no worker wrote it, and it hides one that a worker wrote
	}
	return e.Seq, nil
}

// LastForgetOf returns the sequence of the last session.forget of a session, or 0.
func LastForgetOf(ctx context.Context, nc *nats.Conn, a events.Address) (uint64, error) {
	return LastForget(ctx, nc, events.LoggedAnywhere(events.KindForget, a))
}

// PublishUnlessErased is [stream.PublishOnce] for a session.summary, which quotes its session. It returns
// [ErrErased] if a session.forget was stored since [LastForgetOf] returned since. The server compares the
// sequences, so that no such event can follow its erasure, but only for one subject: that of the partition which
// requested the summary. In a log that grew, the session.forget may be stored under another subject at the same
// time, see [Repeat].
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

// Repeat requests the erasure of a session again if the summary of a job, which quotes erased content, is stored
// after a session.forget later than since. It returns [ErrErased] if there is such a session.forget.
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
