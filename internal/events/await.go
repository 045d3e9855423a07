package events

import (
	"math"
	"time"

	"compactd/internal/events/codec"
)

// How long a request waits for a turn where it does not say, and at most.
const (
	DefaultWait = 5 * time.Second
	MaxWait     = 8 * time.Second
)

// Await is what a request waits for before it is answered: nothing where Turn and Seq
// are 0.
type Await struct {
	// Turn is decided when it was taken or refused, or is parked.
	Turn int64 `json:"turn,omitzero"`
	// Seq is that of an event of the session, as its acknowledgement has it; it names
	// what Turn cannot, such as the second of two turns of one number.
	Seq uint64 `json:"seq,omitzero"`
	// WaitMS is the most to wait, in milliseconds; nil is [DefaultWait].
	WaitMS *int64 `json:"wait_ms,omitzero"`
}

// Waits reports whether there is something to wait for.
func (a Await) Waits() bool { return a.Turn > 0 || a.Seq > 0 }

// Limit is how long to wait.
func (a Await) Limit() time.Duration {
	if a.WaitMS == nil {
		return DefaultWait
	}
	return time.Duration(*a.WaitMS) * time.Millisecond
}

// Within returns a with another time.
func (a Await) Within(d time.Duration) Await {
	ms := max(d.Milliseconds(), 0)
	a.WaitMS = &ms
	return a
}

// AwaitedBy reads what a request waits for, and about which session it is, whatever it
// asks.
func AwaitedBy(request []byte) (Address, Await, error) {
	env, err := decodeEnvelope(request, MaxCheckBytes)
	if err != nil {
		return Address{}, Await{}, err
	}
	return env.address(), env.await(), env.problems.err()
}

// WithAwait returns a request that waits for something else.
func WithAwait(request []byte, a Await) ([]byte, error) {
	data, err := Marshal(a)
	if err != nil {
		return nil, err
	}
	changed, err := codec.ReadObject(data)
	if err != nil {
		return nil, err
	}
	ms, err := codec.ReadObject(request)
	for _, m := range changed {
		ms = codec.SetMember(ms, m.Name, m.Value)
	}
	return codec.WriteObject(ms), err
}

func (e *envelope) await() Await {
	a := Await{Turn: e.count("turn", 1, MaxNumber), Seq: uint64(e.count("seq", 1, math.MaxInt64))}
	if _, ok := e.take("wait_ms"); ok {
		ms := e.count("wait_ms", 0, MaxWait.Milliseconds())
		a.WaitMS = &ms
	}
	return a
}
