package stream

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// A stored message keeps all headers of its publisher: also copies of the server's headers,
// repeated headers, other letter cases, up to 64 KB of them, and malformed blocks. So any header
// may be forged. The following may be read:
//
//   - Whether a message is from a stream, its stream, sequence, time and the number of pending
//     messages: from the reply subject of its delivery, which the server sets. No header is read.
//   - Status, Description, Nats-Pending-Messages, Nats-Last-Consumer and Nats-Last-Stream: only of
//     a message that arrived in an own inbox without such a reply subject, never of a stored one.
//   - Nats-Subject, Nats-Sequence and Nats-Time-Stamp of a Direct Get: the server appends its
//     headers to the stored ones, so the last of each is the server's, if the client read the whole
//     block; see [directAnswer]. Any other answer (a status, a block that ends early or cannot be
//     read) is not used: the leader is read instead, which answers in JSON and puts the stored
//     values into strings.
//   - Nats-Msg-Id of an event: the publisher's own id, checked like one in a payload.
//   - Nats-Expected-Last-Subject-Sequence, its subject, and Nats-Batch-Sequence in
//     OUTCOMES: the server has checked them. A message without them is in no commit; see [Outcome].
//   - Compactd-Marker, KV-Operation and Nats-Marker-Reason: read in OUTCOMES, at the end of a
//     commit, and in the buckets. They are never read from an event.
//   - Nats-Sequence of a message that OUTCOMES republishes: the last one, which the server appended.
//     Only the server may publish there; any other publisher could forge whole outcomes.
//
// Names are case-sensitive: status is not Status.

// Outcome reports whether a message of OUTCOMES may belong to a commit, by its subject and headers: it
// is in no partition, as the text of a config, or the server has checked a fence for it. Only a read of
// the whole partition shows whether its commit is valid, with a marker that continues the previous one.
func Outcome(subject string, h nats.Header) bool {
	rest, ok := strings.CutPrefix(subject, outcomes)
	id, _, _ := strings.Cut(rest, ".")
	partition, err := strconv.Atoi(id)
	return !ok || err != nil || jsapi.Fenced(h, events.OutcomeFilter(partition))
}

// outcomes begins the subjects of OUTCOMES.
const outcomes = "out."

// lastHeader returns the last value of a header, "" without one.
func lastHeader(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// leastAnswer is the smallest number of bytes that a server appends to the headers of a message in
// its answer to a Direct Get.
const leastAnswer = len("Nats-Stream: " + topology.LogStream + "\r\n" + "Nats-Subject: log.0.k.t.s\r\n" + "Nats-Sequence: 1\r\n" + "Nats-Time-Stamp: 2006-01-02T15:04:05Z\r\n")

// directAnswer reads a server's answer to a Direct Get of a sequence. It returns false if the headers
// may not be the server's.
//
// A stored header may contain the values of another message and then an empty line, where a client
// stops to read. Then the server's headers are among the unread bytes: at least leastAnswer of them.
func directAnswer(m *nats.Msg, seq uint64) (LogMessage, bool) {
	block := m.Size() - len(m.Subject) - len(m.Reply) - len(m.Data)
	if m.Header == nil || len(m.Header[headerStatus]) > 0 || block-leastBlock(m.Header) >= leastAnswer {
		return LogMessage{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, lastHeader(m.Header, headerTimestamp))
	out := LogMessage{Seq: jsapi.ParseSeq(lastHeader(m.Header, headerSequence)), Subject: lastHeader(m.Header, headerSubject), Time: at, Data: m.Data}
	return out, err == nil && out.Seq == seq && out.Subject != ""
}

// leastBlock returns the size of headers in the shortest form that a client reads.
func leastBlock(h nats.Header) int {
	n := len("NATS/1.0\n\n")
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(":") + len(v) + len("\n")
		}
	}
	return n
}
