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

// A stored message keeps the headers of its publisher, whatever they are called: those of the
// server too, twice, in other letter cases, up to 64 KB of them, and blocks that are in no
// form at all. So each header of a message comes from its publisher, and this is what may be
// read of it:
//
//   - Whether a message is one of a stream, its stream, sequence, time and what is behind it:
//     off the reply subject of its delivery, which the server makes. No header is read.
//   - Status, Description, Nats-Pending-Messages, Nats-Last-Consumer and Nats-Last-Stream: of a
//     message that arrived in an inbox of ours without such a reply subject, and of none that
//     was stored.
//   - Nats-Subject, Nats-Sequence and Nats-Time-Stamp of a Direct Get: the server appends its
//     own to what was stored, so the last of each is its own, if the client has read the
//     block to its end; see [directAnswer]. Any other answer (a status, a block that ends early,
//     one that cannot be read) is worth nothing: the leader is read, which answers in JSON
//     and puts what was stored into strings.
//   - Nats-Msg-Id of an event: the publisher's own id, checked like one in a payload.
//   - Nats-Expected-Last-Subject-Sequence, the subject of that, and Nats-Batch-Sequence in
//     OUTCOMES: the server has checked them. A message without is of no commit; see [Outcome].
//   - Compactd-Marker, KV-Operation and Nats-Marker-Reason: read in OUTCOMES, at the end of a
//     commit, and in the buckets. They are never read off an event.
//   - Nats-Sequence of what OUTCOMES republishes: the last, which the server appended. Only the
//     server may publish there; where a publisher may too, it may forge all of an outcome.
//
// Names are compared as they are: status is no Status.

// Outcome reports whether a message of OUTCOMES may be of a commit by its subject and headers: it
// is in no partition, as the text of a config, or the server has checked a fence for it. Whether
// its commit is one, with a marker that continues the one before, shows in the whole of its
// partition alone.
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

// leastAnswer is how many bytes a server appends to the headers of a message that it answers
// a Direct Get with, at least.
const leastAnswer = len("Nats-Stream: " + topology.LogStream + "\r\n" + "Nats-Subject: log.0.k.t.s\r\n" + "Nats-Sequence: 1\r\n" + "Nats-Time-Stamp: 2006-01-02T15:04:05Z\r\n")

// directAnswer reads what a server answers to a Direct Get of a sequence; false when it may not
// come from the server.
//
// A stored header may hold an empty line, where a client stops to read, and before it the
// values of another message. Then the server's own are among the bytes that were not read,
// and these are fewer than that.
func directAnswer(m *nats.Msg, seq uint64) (LogMessage, bool) {
	block := m.Size() - len(m.Subject) - len(m.Reply) - len(m.Data)
	if m.Header == nil || len(m.Header[headerStatus]) > 0 || block-leastBlock(m.Header) >= leastAnswer {
		return LogMessage{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, lastHeader(m.Header, headerTimestamp))
	out := LogMessage{Seq: jsapi.ParseSeq(lastHeader(m.Header, headerSequence)), Subject: lastHeader(m.Header, headerSubject), Time: at, Data: m.Data}
	return out, err == nil && out.Seq == seq && out.Subject != ""
}

// leastBlock is how many bytes headers take in the shortest form in which a client reads them.
func leastBlock(h nats.Header) int {
	n := len("NATS/1.0\n\n")
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(":") + len(v) + len("\n")
		}
	}
	return n
}
