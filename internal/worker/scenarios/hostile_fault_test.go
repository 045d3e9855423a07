//go:build faults

package scenarios_test

import (
	"bytes"
	"math/rand/v2"
	"strings"

	"compactd/internal/testkit/plant"
)

// hostileNames are headers that mean something to a server, a client library or a worker.
var hostileNames = []string{
	"Status", "Description", "Nats-Sequence", "Nats-Subject", "Nats-Stream", "Nats-Time-Stamp", "Nats-Last-Sequence", "Nats-Last-Consumer",
	"Nats-Last-Stream", "Nats-Pending-Messages", "Nats-Pending-Bytes", "Nats-Consumer-Stalled", "Nats-Pin-Id", "Nats-Msg-Size", "Nats-Num-Pending",
	"Nats-Msg-Id", "Compactd-Marker", "KV-Operation", "Nats-Marker-Reason", "Nats-Rollup", "Nats-TTL", "Nats-Incr", "Nats-Batch-Id", "Nats-Batch-Sequence",
	"Nats-Batch-Commit", "Nats-Expected-Stream", "Nats-Expected-Last-Subject-Sequence", "Nats-Service-Error-Code", "ce-id", "ce-type", "traceparent", "X",
}

var hostileValues = []string{
	"", " ", "0", "1", "-1", "100", "404", "408", "409", "423", "500", "503", "x", "18446744073709551615", "99999999999999999999", "Idle Heartbeat",
	"FlowControl Request", "Consumer Deleted", "2040-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "log.0.turn.other.s", "session.turn.other.s", "SESSIONS",
	"sub", "all", "DEL", "1s", "\x00", "\xff\xfe", ": ", "\t",
}

// randomMessage returns a message as no honest client sends: a block of headers that is
// one of [plant.All] with a few bytes changed, or made of names and values as they come, and a
// payload.
func randomMessage(r *rand.Rand, turn string) (block, body string) {
	all := plant.All()
	switch r.IntN(4) {
	case 0:
		block = all[r.IntN(len(all))].Text
	case 1, 2:
		var pairs []string
		for range 1 + r.IntN(8) {
			pairs = append(pairs, inAnyCase(r, hostileNames[r.IntN(len(hostileNames))]), hostileValues[r.IntN(len(hostileValues))])
		}
		if r.IntN(50) == 0 {
			pairs[1] = strings.Repeat("9", r.IntN(70<<10))
		}
		block = plant.Headers(pairs...)
	}
	for range r.IntN(3) {
		block = changed(r, block)
	}
	switch r.IntN(6) {
	case 0, 1, 2:
	case 3:
		body = turn
	case 4:
		body = changed(r, turn)
	default:
		body = string(randomBytes(r, r.IntN(300)))
	}
	if r.IntN(200) == 0 {
		body += string(randomBytes(r, 256<<10))
	}
	return block, body
}

func inAnyCase(r *rand.Rand, s string) string {
	switch r.IntN(6) {
	case 0:
		return strings.ToLower(s)
	case 1:
		return strings.ToUpper(s)
	default:
		return s
	}
}

// changed is s with some bytes removed, put in, duplicated or other ones.
func changed(r *rand.Rand, s string) string {
	b := []byte(s)
	at, n := r.IntN(len(b)+1), r.IntN(8)
	end := min(at+n, len(b))
	switch r.IntN(4) {
	case 0:
		b = append(b[:at:at], b[end:]...)
	case 1:
		b = bytes.Join([][]byte{b[:at], randomBytes(r, n), b[at:]}, nil)
	case 2:
		b = bytes.Join([][]byte{b[:end], b[at:]}, nil)
	default:
		copy(b[at:end], randomBytes(r, end-at))
	}
	return string(b)
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
