package stream

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
)

// isDelivery reports whether a message is from a stream. All other messages in an inbox of pulls
// are from the server: heartbeats, and the reason why a pull ended. Neither headers nor an
// empty payload prove that: a publisher chooses both.
func isDelivery(m *nats.Msg) bool { return strings.HasPrefix(m.Reply, ackPrefix) }

// message is a message of a stream with its metadata. Its consumer takes no acknowledgements, so
// the methods for them do nothing.
type message struct {
	jetstream.Msg // nil: its consumer takes no acknowledgements

	msg      *nats.Msg
	metadata *jetstream.MsgMetadata
}

var _ jetstream.Msg = message{}

// newMessage reads the metadata from the reply subject.
func newMessage(m *nats.Msg) (message, error) {
	md, err := m.Metadata()
	if err != nil {
		return message{}, err
	}
	return message{msg: m, metadata: &jetstream.MsgMetadata{
		Sequence:     jetstream.SequencePair{Consumer: md.Sequence.Consumer, Stream: md.Sequence.Stream},
		NumDelivered: md.NumDelivered, NumPending: md.NumPending, Timestamp: md.Timestamp,
		Stream: md.Stream, Consumer: md.Consumer, Domain: md.Domain,
	}}, nil
}

// messageOf returns a message that was read by its sequence. The number of pending messages is unknown
// and set to 1, so that no reader treats the message as the last one.
func messageOf(stream string, m *jsapi.StoredMsg, headersOnly bool) message {
	msg := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Headers()}
	if headersOnly {
		msg.Data = nil
	}
	return message{msg: msg, metadata: &jetstream.MsgMetadata{
		Sequence: jetstream.SequencePair{Stream: m.Seq}, NumDelivered: 1, NumPending: 1, Timestamp: m.Time, Stream: stream,
	}}
}

func (m message) Metadata() (*jetstream.MsgMetadata, error) { return m.metadata, nil }

func (m message) Data() []byte { return m.msg.Data }

func (m message) Headers() nats.Header { return m.msg.Header }

func (m message) Subject() string { return m.msg.Subject }

func (m message) Reply() string { return m.msg.Reply }
