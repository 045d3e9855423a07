package jsapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// Timeout bounds one request to the JetStream API. The next try follows.
const Timeout = 5 * time.Second

// GetRequest selects one message of a stream.
type GetRequest struct {
	Seq      uint64 `json:"seq,omitzero"`
	LastFor  string `json:"last_by_subj,omitzero"`
	NextFor  string `json:"next_by_subj,omitzero"` // the first at or after Seq
	NoHeader bool   `json:"no_hdr,omitzero"`
}

// StoredMsg is a message as the leader of its stream has it.
type StoredMsg struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// GetFromLeader reads one message from the leader, which has every message
// that was acknowledged. A Direct Get may come from a replica that lags. Returns
// [jetstream.ErrMsgNotFound] when there is none. It waits for a cluster that elects one.
func GetFromLeader(ctx context.Context, nc *nats.Conn, stream string, req GetRequest) (*StoredMsg, error) {
	return RetryUntilLeader(ctx, func(ctx context.Context) (*StoredMsg, error) { return GetWithin(ctx, nc, stream, req, Timeout) })
}

// AwaitFromLeader is GetFromLeader without a bound of its own: it tries until there is an
// answer, an error that no later try can change, or ctx ends.
func AwaitFromLeader(ctx context.Context, nc *nats.Conn, stream string, req GetRequest) (*StoredMsg, error) {
	m, err := RetryHedged(ctx, func(ctx context.Context) (*StoredMsg, error) { return GetWithin(ctx, nc, stream, req, Timeout) }, nil, Retryable)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return m, err
}

// GetWithin is GetFromLeader for callers that retry after a time-out of their own.
func GetWithin(ctx context.Context, nc *nats.Conn, stream string, req GetRequest, timeout time.Duration) (*StoredMsg, error) {
	body, err := events.Marshal(req)
	if err != nil {
		return nil, err
	}
	reply, err := Request(ctx, nc, &nats.Msg{Subject: SubjectGet + stream, Data: body}, timeout)
	if err != nil {
		return nil, fmt.Errorf("read from leader of %s: %w", stream, err)
	}
	m, err := ParseStored(reply.Data)
	return m, Wrap(err, "read from leader of %s", stream)
}

// Headers are those of the message; none when they are not in the form of the protocol, as
// the client reports them of a message that a consumer delivers.
func (m *StoredMsg) Headers() nats.Header {
	if len(m.Header) == 0 {
		return nil
	}
	h, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil {
		return nil
	}
	return h
}

// ParseStored reads the answer of a leader.
func ParseStored(answer []byte) (*StoredMsg, error) {
	var resp struct {
		Message *StoredMsg          `json:"message"`
		Error   *jetstream.APIError `json:"error"`
	}
	if err := events.Unmarshal(answer, &resp); err != nil {
		return nil, err
	}
	if resp.Error != nil {
		return nil, resp.Error
	}
	if resp.Message == nil {
		return nil, errors.New("answer without message")
	}
	return resp.Message, nil
}

// Request sends m and waits for the answer, at most timeout. The end of ctx and
// that of the timeout are different errors.
func Request(ctx context.Context, nc *nats.Conn, m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	one, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := nc.RequestMsgWithContext(one, m)
	if err == nil {
		return reply, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w within %s", ErrNoAnswer, timeout)
	}
	return nil, err
}

// ParseSeq reads a sequence off a header; 0 if there is none.
func ParseSeq(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
