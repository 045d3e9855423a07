package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// event is an outcome to send, or a signal for operators. The followers that it is queued for share it, and its
// payload while one of them sends it.
type event struct {
	seq  uint64
	at   events.Location
	size int64  // of the payload, in bytes
	line []byte // the whole signal; nil for an outcome

	mu      sync.Mutex // guards the fields below; held while the payload is read
	users   int        // followers that send the payload
	payload []byte
	memory  *limit.Operation // of the payload
}

// memoryPart is the part of a tenant's memory that its followers share: they leave a quarter to its requests.
const memoryPart = "events"

// open returns the payload, empty if it was erased. The first follower reads it, once it has the memory for it. close
// must follow unless there is an error.
func (e *event) open(ctx context.Context, h *Hub) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users == 0 {
		e.memory = h.limiter.Begin(limit.Account{Tenant: e.at.Address.Tenant, Part: memoryPart})
		err := e.memory.Remember(ctx, e.size*limit.PerByte)
		if err == nil {
			e.payload, err = e.read(ctx, h)
		}
		if err != nil {
			e.memory.End()
			return nil, err
		}
		e.memory.Shrink(int64(len(e.payload)))
	}
	e.users++
	return e.payload, nil
}

// close frees the payload after its last user.
func (e *event) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users--; e.users == 0 {
		e.payload = nil
		e.memory.End()
	}
}

// read reads the payload from the leader, which has every committed one.
func (e *event) read(ctx context.Context, h *Hub) ([]byte, error) {
	m, err := jsapi.GetFromLeader(ctx, h.js.Conn(), topology.OutcomesStream, jsapi.GetRequest{Seq: e.seq, NoHeader: true})
	if errors.Is(err, jetstream.ErrMsgNotFound) { // erased
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if at, err := events.ParseOutcome(m.Subject); err != nil || at != e.at {
		return nil, fmt.Errorf("outcome %d: the stream was replaced", e.seq)
	}
	return oneLine(m.Data), nil
}

// oneLine replaces line ends in JSON, where they are only white space.
func oneLine(data []byte) []byte {
	for i, c := range data {
		if c == '\n' || c == '\r' {
			data[i] = ' '
		}
	}
	return data
}

// parts returns the outcome as it is sent to a follower of a session. Followers share the payload, so it is not
// copied.
func (e *event) parts(of events.Address, payload []byte) [][]byte {
	head := "event: " + string(e.at.Kind) + "\nid: " + strconv.FormatUint(e.seq, 10) + "\ndata: "
	if e.at.Address != of {
		var begin string
		begin, payload = ofBranch(e.at.Address.Session, payload)
		head += begin
	}
	return [][]byte{[]byte(head), payload, []byte("\n\n")}
}

// ofBranch adds a session to the payload of an outcome, which continues with rest.
func ofBranch(session string, payload []byte) (begin string, rest []byte) {
	rest = bytes.TrimLeft(payload, " \r\n\t{")
	begin = `{"session":"` + session + `"`
	if !bytes.HasPrefix(rest, []byte("}")) {
		begin += ","
	}
	return begin, rest
}
