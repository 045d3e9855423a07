package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events/codec"
)

var (
	// ErrFenced: another owner, or a later epoch, has the partition. Stop serving it.
	ErrFenced = errors.New("partition was taken over by another owner")
	// ErrDiverged: no other owner took over, but OUTCOMES does not end with this committer's
	// last commit. A commit with an unknown result was stored, or a power loss or a purge
	// truncated the stream. Open the partition again.
	ErrDiverged = errors.New("outcomes do not end where this owner left them")
)

// Claim describes a take-over of a partition by a new owner.
type Claim struct {
	Partition int
	// Owner identifies this owner. No other owner, past or present, may have the same.
	Owner string
	// Config is the hash of the config for the next events.
	Config string
	// LogCreated goes into the first marker of a partition, in Unix nanoseconds.
	// Later markers keep the value of the first.
	LogCreated int64
	// From replaces the marker of a partition that was split off and has no marker yet. The zero
	// value is the beginning of the log.
	From Marker
	// ReplyTimeout limits the wait of one attempt before the marker is read. Default
	// 2 s. A short timeout costs extra reads, not correctness.
	ReplyTimeout time.Duration
	// OnRetry receives the error before a commit is tried again. It must not block.
	OnRetry func(error)
	// OnForeign receives the count of messages that belong to no commit; each is counted once per
	// ownership. It must not block.
	OnForeign func(Foreign)
}

// Committer writes the outcomes of one partition while it owns it. It belongs to
// one goroutine, and should have a separate connection.
// See docs/adr/0013.
type Committer struct {
	nc    *nats.Conn
	js    jetstream.JetStream // on nc
	claim Claim
	epoch uint64
	ended Stored // the last commit that is known to be stored
	fence uint64 // last sequence that the next commit expects: of ended, or of a later foreign message
}

// TakeOver makes the caller the owner of a partition. It reads the newest marker, skips later messages
// that belong to no commit, and commits a marker with the next epoch and the same cursor, chain and
// event. From then on the server refuses every commit of the former owner. TakeOver returns the marker that it
// found, from which the caller continues. It retries after a race, until ctx ends.
func TakeOver(ctx context.Context, nc *nats.Conn, cl Claim) (*Committer, Stored, error) {
	cl.ReplyTimeout = cmp.Or(cl.ReplyTimeout, 2*time.Second)
	if cl.Owner == "" || cl.Partition < 0 {
		return nil, Stored{}, fmt.Errorf("take over partition %d: owner %q or partition is invalid", cl.Partition, cl.Owner)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, Stored{}, fmt.Errorf("take over partition %d: %w", cl.Partition, err)
	}
	var c *Committer
	var found end
	wait := maxWait(cl.ReplyTimeout)
	err = jsapi.Retry(ctx, cl.OnRetry, func() error {
		var err error
		found, err = wait.end(ctx, js, func(timeout time.Duration) (end, error) { return wholeEnd(ctx, nc, cl.Partition, timeout) })
		if err != nil {
			return jsapi.Transient(err)
		}
		if found.Seq == 0 {
			found.Marker = cl.From
		}
		c = &Committer{nc: nc, js: js, claim: cl, epoch: found.Epoch + 1, ended: found.Stored, fence: found.last}
		m := found.Marker
		m.Taken = true
		if m.Before = ""; found.Config != cl.Config {
			m.Before = found.Config
		}
		m.Config = cl.Config
		if found.Seq == 0 {
			m.LogCreated = cl.LogCreated
		}
		err = c.commit(ctx, nil, m)
		return retry.When(errors.Is(err, ErrFenced) || errors.Is(err, ErrDiverged), err) // raced: read the marker again
	})
	if err != nil {
		return nil, Stored{}, fmt.Errorf("take over partition %d: %w", cl.Partition, err)
	}
	c.report(found.Foreign)
	return c, found.Stored, nil
}

// Epoch returns the number of take-overs of the partition, including this one.
func (c *Committer) Epoch() uint64 { return c.epoch }

// LastSeq returns the sequence in OUTCOMES of the last committed message.
func (c *Committer) LastSeq() uint64 { return c.ended.Seq }

// Commit stores msgs, in order, and the marker, all or nothing. Without messages
// it stores the marker alone. One message is a plain publish; several are one
// atomic batch, at most [MaxBatch]. Commit sets Owner and Epoch of m.
//
// If the server refuses a commit temporarily or does not answer, Commit retries until
// ctx ends. It interprets the answers as follows:
//
//   - Wrong last sequence (10071), or no answer: the newest marker decides. It
//     names this commit: stored. It is the previous one: not stored, sent
//     again, after any messages that belong to no commit. It has another owner or a
//     later epoch: [ErrFenced]. Otherwise: [ErrDiverged].
//   - Busy (10163, 10164), batch incomplete (10176), too many batches (10210), no
//     leader (10008, 10009, 10118, 10194): nothing is stored, sent again.
//   - No space (10002, 10023, 10047, 10077, 10122): [*StoreFullError].
//   - Too large (10054, 10097): [*TooLargeError].
//
// After the end of ctx it is unknown whether the commit was stored. The committer stays
// usable: if the commit was stored, the next one returns [ErrDiverged]. Give
// the last commit before a shutdown a separate context.
func (c *Committer) Commit(ctx context.Context, msgs []Message, m Marker) error {
	if err := c.commit(ctx, msgs, m); err != nil {
		return fmt.Errorf("commit partition %d: %w", c.claim.Partition, err)
	}
	return nil
}

func (c *Committer) commit(ctx context.Context, msgs []Message, m Marker) error {
	m.Owner, m.Epoch = c.claim.Owner, c.epoch
	id := nuid.Next()
	batch, err := c.batch(msgs, markerText{m, id})
	if err != nil {
		return err
	}
	unknown, wait := false, maxWait(c.claim.ReplyTimeout)
	return jsapi.Retry(ctx, c.claim.OnRetry, func() error {
		var err error
		if !unknown {
			var seq uint64
			if seq, err = c.send(ctx, batch); err == nil {
				c.reach(Stored{Marker: m, Seq: seq, commit: id})
				return nil
			}
			if unknown, err = classify(err); !unknown {
				return err
			}
		}
		found, lerr := wait.end(ctx, c.js, func(timeout time.Duration) (end, error) {
			return endAfter(ctx, c.nc, c.claim.Partition, c.ended, c.fence, timeout)
		})
		if lerr != nil {
			return jsapi.Transient(lerr)
		}
		unknown = false
		return c.resolve(found, id, err)
	})
}

// resolve decides from the end of the partition whether the commit id was stored. cause is
// the error that made the result unknown, or nil after a failed read of the end.
func (c *Committer) resolve(found end, id string, cause error) error {
	switch {
	case found.Seq != 0 && found.commit == id:
		c.reach(found.Stored)
	case found.Seq == c.ended.Seq && found.commit == c.ended.commit && found.last >= c.fence:
		cause = fmt.Errorf("not stored: %w", cmp.Or(cause, jsapi.ErrNoAnswer))
	case found.Epoch > c.epoch, found.Epoch == c.epoch && found.Owner != c.claim.Owner:
		return retry.Final(fmt.Errorf("%w: %s, epoch %d", ErrFenced, found.Owner, found.Epoch))
	default:
		return retry.Final(fmt.Errorf("%w: at sequence %d, not %d", ErrDiverged, found.Seq, c.ended.Seq))
	}
	c.fence = found.last // past the messages that belong to no commit
	c.report(found.Foreign)
	if c.ended.commit == id {
		return nil
	}
	return cause
}

// reach sets the last commit of this owner.
func (c *Committer) reach(s Stored) { c.ended, c.fence = s, s.Seq }

func (c *Committer) report(f Foreign) {
	if f.Messages > 0 && c.claim.OnForeign != nil {
		c.claim.OnForeign(f)
	}
}

// send publishes the batch once and returns the sequence of its last message.
// Only the last message requests a reply; it commits the batch. Every attempt has a
// new batch id: the server may still hold the messages of the previous one.
func (c *Committer) send(ctx context.Context, batch []*nats.Msg) (uint64, error) {
	c.setFence(batch)
	if err := c.fits(batch); err != nil { // a reconnect may lower the limit
		return 0, retry.Final(err)
	}
	last := batch[len(batch)-1]
	if len(batch) > 1 {
		id := []string{nuid.Next()}
		for _, m := range batch {
			m.Header[jsapi.HeaderBatchID] = id
		}
		for _, m := range batch[:len(batch)-1] {
			if err := c.nc.PublishMsg(m); err != nil {
				return 0, err
			}
		}
	}
	reply, err := jsapi.Request(ctx, c.nc, last, c.claim.ReplyTimeout)
	if err != nil {
		return 0, err
	}
	var a pubAck
	if err := codec.Unmarshal(reply.Data, &a); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	if a.Error != nil {
		return 0, &refusal{a.Error, last.Subject, headerSize(last.Header) + len(last.Data)}
	}
	if a.Stream != topology.OutcomesStream || a.Seq == 0 || len(batch) > 1 && a.Count != len(batch) {
		return 0, retry.Final(fmt.Errorf("commit of %d messages was answered by %q with sequence %d, count %d", len(batch), a.Stream, a.Seq, a.Count))
	}
	return a.Seq, nil
}
