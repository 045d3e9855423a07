package commit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/events"
)

// MaxBatch limits the messages of a commit. The server's limit is 1,000.
const MaxBatch = 900

// Message is one outcome or job of a commit. Subject must begin with out.<p>. of the
// partition.
type Message struct {
	Subject string
	Data    []byte
	Trace   events.Trace // of the event that caused it
}

// batch builds the messages of a commit once for all attempts; each attempt sets the fence.
func (c *Committer) batch(msgs []Message, t markerText) ([]*nats.Msg, error) {
	if len(msgs) > MaxBatch {
		return nil, fmt.Errorf("%d messages are more than %d", len(msgs), MaxBatch)
	}
	if len(msgs) == 0 {
		msgs = []Message{{Subject: events.Marker(c.claim.Partition)}}
	}
	text, err := t.text()
	if err != nil {
		return nil, fmt.Errorf("encode marker: %w", err)
	}
	filter := events.OutcomeFilter(c.claim.Partition)
	out := make([]*nats.Msg, len(msgs))
	for i, m := range msgs {
		if err := checkSubject(m.Subject, strings.TrimSuffix(filter, ">")); err != nil {
			return nil, err
		}
		out[i] = &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{}}
		if m.Trace != "" {
			out[i].Header[events.HeaderTrace] = []string{string(m.Trace)}
		}
		if len(msgs) > 1 {
			out[i].Header[jsapi.HeaderBatchID] = []string{t.Commit} // has the length of the id that send sets
			out[i].Header[jsapi.HeaderBatchSeq] = []string{strconv.Itoa(i + 1)}
		}
	}
	c.setFence(out)
	last := out[len(out)-1].Header
	last[HeaderMarker] = []string{text}
	if len(msgs) > 1 {
		last[jsapi.HeaderBatchCommit] = []string{"1"}
	}
	return out, nil
}

// setFence puts the current fence on the first message.
func (c *Committer) setFence(batch []*nats.Msg) {
	if !jsapi.Unfenced() {
		batch[0].Header[jsapi.HeaderFence] = []string{strconv.FormatUint(c.fence, 10)}
		batch[0].Header[jsapi.HeaderFenceSubject] = []string{events.OutcomeFilter(c.claim.Partition)}
	}
}

func (c *Committer) fits(batch []*nats.Msg) error {
	limit := connect.MaxPayload(c.nc)
	for _, m := range batch {
		if n := headerSize(m.Header) + len(m.Data); n > limit {
			return &TooLargeError{Subject: m.Subject, Size: n, Limit: limit}
		}
	}
	return nil
}

// checkSubject refuses a subject that a hostile id could move outside of the fence, or to
// no stream: such a message would be lost without an answer.
func checkSubject(subject, prefix string) error {
	rest, ok := strings.CutPrefix(subject, prefix)
	if !ok {
		return fmt.Errorf("subject %q is outside of %s", subject, prefix)
	}
	for token := range strings.SplitSeq(rest, ".") {
		bad := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '*' || r == '>' })
		if token == "" || bad {
			return fmt.Errorf("invalid subject %q", subject)
		}
	}
	return nil
}

// headerSize returns the length of h on the wire.
func headerSize(h nats.Header) int {
	n := len("NATS/1.0\r\n\r\n")
	for k, vs := range h {
		for _, v := range vs {
			n += len(k) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}
