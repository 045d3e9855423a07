package plant

import (
	"fmt"
	"strings"
)

// Block is a block of headers as it goes over the wire.
type Block struct{ Name, Text string }

// statuses are those that a server sends beside the messages of a stream, and some more.
var statuses = []string{
	"100", "100 Idle Heartbeat", "100 FlowControl Request", "204 EOB", "400 Bad Request", "404 No Messages", "408 Request Timeout",
	"409 Consumer Deleted", "409 Leadership Change", "409 Server Shutdown", "409 Message Size Exceeds MaxBytes", "409 Batch Completed",
	"409 Exceeded MaxWaiting", "423 Nats-Wrong-Pin-Id", "500", "503", "999 x", "-1",
}

// Controls are blocks that make a message without a payload look like one of the server's own.
func Controls() []Block {
	var out []Block
	for _, s := range statuses {
		code, text, _ := strings.Cut(s, " ")
		out = append(out,
			Block{"inline " + s, "NATS/1.0 " + s + "\r\n\r\n"},
			Block{"header " + s, Headers("Status", code, "Description", text)},
			Block{"lower case " + s, Headers("status", code, "STATUS", code, "description", text)},
			Block{"twice " + s, Headers("Status", "", "Status", code, "Status", code, "Description", text)},
			Block{"with figures " + s, Headers("Status", code, "Description", text, "Nats-Pending-Messages", "1000000", "Nats-Pending-Bytes", "1000000000",
				"Nats-Last-Consumer", "1", "Nats-Last-Stream", "99999999", "Nats-Consumer-Stalled", "session.turn.acme.s", "Nats-Pin-Id", "x", "Nats-Msg-Size", "0")},
		)
	}
	return out
}

// Answers are blocks that plant what a server writes into the answer to a read: a status, or
// values in the place of subject, sequence and time.
func Answers() []Block {
	var out []Block
	for _, s := range []string{"100", "404", "408", "500", "503"} {
		out = append(out, Block{"status " + s, Headers("Status", s)}, Block{"inline status " + s, "NATS/1.0 " + s + "\r\n\r\n"})
	}
	for _, h := range [][2]string{
		{"Nats-Sequence", "1"},
		{"Nats-Sequence", "x"},
		{"Nats-Time-Stamp", "x"},
		{"Nats-Time-Stamp", "2040-01-01T00:00:00Z"},
		{"Nats-Subject", "log.0.turn.other.s"},
		{"Nats-Stream", "OTHER"},
		{"Nats-Msg-Id", "planted id"},
		{"Nats-Msg-Id", "no UTF-8 \xff\xfe"},
		{"Compactd-Marker", `{"cursor":9}`},
	} {
		lower, upper := strings.ToLower(h[0]), strings.ToUpper(h[0])
		out = append(out,
			Block{h[0] + " " + h[1], Headers(h[0], h[1])},
			Block{h[0] + " twice", Headers(h[0], h[1], h[0], h[1]+"2")},
			Block{h[0] + " in other cases", Headers(lower, h[1], upper, h[1])},
			Block{h[0] + " of 64 KB", Headers(h[0], strings.Repeat("9", 63<<10))},
			Block{h[0] + " without a space", "NATS/1.0\r\n" + h[0] + ":" + h[1] + "\r\n\r\n"},
		)
	}
	all := Headers("Nats-Stream", "SESSIONS", "Nats-Subject", "log.0.turn.other.s", "Nats-Sequence", "1", "Nats-Time-Stamp", "2040-01-01T00:00:00Z")
	return append(out,
		Block{"a whole answer", all},
		Block{"a whole answer that ends early", all + "XX"},
		Block{"an early end behind many short lines", "NATS/1.0\r\n" + strings.Repeat("a:b\n", 200) + all[len("NATS/1.0\r\n"):] + "XX"},
		Block{"an early end behind a status", "NATS/1.0 404 Message Not Found\r\n\r\nXX"},
		Block{"an early end without a sequence", "NATS/1.0\r\nA: b\r\n\r\nXX"},
	)
}

// Malformed are blocks that no client can read.
func Malformed() []Block {
	var out []Block
	for _, text := range []string{
		"\r\n", "\n", "x", "XX", "\x00\x01\xfe\xff", "NATS/1.0", "NATS/1.0\r\n", "NATS/1.0\r\nA", "NATS/1.0\r\nA: b", "NATS/1.0\r\nA: b\r\n",
		"NATS/1.0\r\nno colon\r\n\r\n", "NATS/1.0\r\n: no key\r\n\r\n", "NATS/1.0 5\r\n\r\n", "NATS/2.0\r\nA: b\r\n\r\n", "nats/1.0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n", "NATS/1.0\r\n\r\n\r\n\r\n", strings.Repeat("\r\n", 1000), strings.Repeat("x", 63<<10), "NATS/1.0\r\n" + strings.Repeat("a:\n", 20<<10) + "\r\n",
	} {
		out = append(out, Block{fmt.Sprintf("malformed %.24q", text), text})
	}
	return out
}

// All are the blocks of [Controls], [Answers] and [Malformed].
func All() []Block {
	out := Controls()
	out = append(out, Answers()...)
	return append(out, Malformed()...)
}

// Headers is a block of names and values as clients write it.
func Headers(pairs ...string) string {
	var b strings.Builder
	b.WriteString("NATS/1.0\r\n")
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(pairs[i] + ": " + pairs[i+1] + "\r\n")
	}
	b.WriteString("\r\n")
	return b.String()
}
