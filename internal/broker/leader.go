package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// apiTimeout bounds one request to the JetStream API. The next try follows.
const apiTimeout = 5 * time.Second

// followerTimeout is how old a leader's last message from another copy may be for that copy to
// count as its follower. Copies send one every 2 s, and elect another leader no sooner than
// 4 s after the last message of theirs.
const followerTimeout = 3 * time.Second

var errNoQuorum = errors.New("the server that answers does not lead most copies of the stream")

// hasQuorum reports whether the server that answered with c is the leader that most copies
// follow. Others answer too: a copy that has just started, one without a leader, and, for a
// second after its return, a leader that was cut off while another one was elected. They do
// not have what was stored meanwhile, and report all copies as up to date.
func hasQuorum(c *jetstream.ClusterInfo) bool {
	if c == nil || len(c.Replicas) == 0 {
		return true // there is one copy
	}
	follow := 1
	for _, r := range c.Replicas { // the others
		if r.Name == c.Leader {
			return false
		}
		if 0 < r.Active && r.Active < followerTimeout {
			follow++
		}
	}
	return c.Leader != "" && 2*follow > len(c.Replicas)+1
}

// getRequest selects one message of a stream.
type getRequest struct {
	Seq      uint64 `json:"seq,omitzero"`
	LastFor  string `json:"last_by_subj,omitzero"`
	NextFor  string `json:"next_by_subj,omitzero"` // the first at or after Seq
	NoHeader bool   `json:"no_hdr,omitzero"`
}

// storedMsg is a message as the leader of its stream has it.
type storedMsg struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// getFromLeader reads one message from the leader, which has every message
// that was acknowledged. A Direct Get may come from a replica that lags. Returns
// [jetstream.ErrMsgNotFound] when there is none. It waits for a cluster that elects one.
func getFromLeader(ctx context.Context, nc *nats.Conn, stream string, req getRequest) (*storedMsg, error) {
	return retryUntilLeader(ctx, func(ctx context.Context) (*storedMsg, error) { return getWithin(ctx, nc, stream, req, apiTimeout) })
}

// getWithin is getFromLeader for callers that retry after a time-out of their own.
func getWithin(ctx context.Context, nc *nats.Conn, stream string, req getRequest, timeout time.Duration) (*storedMsg, error) {
	body, err := events.Marshal(req)
	if err != nil {
		return nil, err
	}
	reply, err := request(ctx, nc, &nats.Msg{Subject: apiGet + stream, Data: body}, timeout)
	if err != nil {
		return nil, fmt.Errorf("read from leader of %s: %w", stream, err)
	}
	m, err := parseStored(reply.Data)
	return m, wrap(err, "read from leader of %s", stream)
}

// headers are those of the message; none when they are not in the form of the protocol, as
// the client reports them of a message that a consumer delivers.
func (m *storedMsg) headers() nats.Header {
	if len(m.Header) == 0 {
		return nil
	}
	h, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil {
		return nil
	}
	return h
}

func parseStored(answer []byte) (*storedMsg, error) {
	var resp struct {
		Message *storedMsg          `json:"message"`
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

// errNoAnswer: a request got no answer in its own time, and the context of its caller
// has not ended.
var errNoAnswer = errors.New("no answer")

// request sends m and waits for the answer, at most timeout. The end of ctx and
// that of the timeout are different errors.
func request(ctx context.Context, nc *nats.Conn, m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
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
		return nil, fmt.Errorf("%w within %s", errNoAnswer, timeout)
	}
	return nil, err
}
