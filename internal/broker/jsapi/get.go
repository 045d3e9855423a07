package jsapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events/codec"
)

// Timeout limits one request to the JetStream API. A retry follows.
const Timeout = 5 * time.Second

// GetRequest selects one message of a stream.
type GetRequest struct {
	Seq      uint64 `json:"seq,omitzero"`
	LastFor  string `json:"last_by_subj,omitzero"`
	NextFor  string `json:"next_by_subj,omitzero"` // the first at or after Seq
	NoHeader bool   `json:"no_hdr,omitzero"`
}

// StoredMsg is a message in the answer of the leader of its stream.
type StoredMsg struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// GetFromLeader reads one message from the leader, which has every acknowledged message; a Direct
// Get may come from a replica that lags. It returns [jetstream.ErrMsgNotFound] without a
// message. It waits for the election of a leader.
func GetFromLeader(ctx context.Context, nc *nats.Conn, stream string, req GetRequest) (*StoredMsg, error) {
	return RetryUntilLeader(ctx, func(ctx context.Context) (*StoredMsg, error) { return GetWithin(ctx, nc, stream, req, Timeout) })
}

// AwaitFromLeader is GetFromLeader without a time limit: it retries until it gets an answer or a
// permanent error, or ctx ends.
func AwaitFromLeader(ctx context.Context, nc *nats.Conn, stream string, req GetRequest) (*StoredMsg, error) {
	m, err := RetryHedged(ctx, func(ctx context.Context) (*StoredMsg, error) { return GetWithin(ctx, nc, stream, req, Timeout) }, nil, Retryable)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return m, err
}

// GetWithin is one attempt of GetFromLeader with a timeout, for callers that retry.
func GetWithin(ctx context.Context, nc *nats.Conn, stream string, req GetRequest, timeout time.Duration) (*StoredMsg, error) {
	body, err := codec.Marshal(req)
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

// Headers returns the headers of the message, or nil if they are malformed, as the client does for a
// message that a consumer delivers.
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
	if err := codec.Unmarshal(answer, &resp); err != nil {
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

// Request sends m and waits for the answer, at most timeout. It returns the error of ctx if
// ctx ended, and [ErrNoAnswer] after the timeout.
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

// ParseSeq parses the sequence in a header; 0 if it is not a number.
func ParseSeq(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
