package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// Marker is how far a partition is decided, and by which owner. The last message of
// every commit carries one.
type Marker struct {
	// Cursor is the sequence of the last log event whose outcomes are stored.
	Cursor uint64 `json:"cursor"`
	// Owner and Epoch name who wrote it. Every take-over adds one to Epoch. A
	// [Committer] fills both.
	Owner string `json:"owner"`
	Epoch uint64 `json:"epoch"`
	// Config is the hash of the config the next events are decided under.
	Config string `json:"config"`
	// Before is the hash of the config that the events up to Cursor were decided
	// under, when it is another one. The marker that reported it may have gone with an
	// outcome that was erased. A [Committer] fills it when it takes over.
	Before string `json:"before,omitzero"`
	// Chain is a hash over the partition's events up to Cursor.
	Chain uint64 `json:"chain"`
	// LastID and LastTime, in Unix milliseconds, belong to the event at Cursor.
	// They do not match when the log is another one, or was truncated.
	LastID   string `json:"last_id"`
	LastTime int64  `json:"last_time"`
	// LogCreated is when the log that Cursor counts in was created, in Unix
	// nanoseconds.
	LogCreated int64 `json:"log_created"`
	// Taken states that the commit did nothing but take the partition over.
	Taken bool `json:"taken,omitzero"`
	// Split is the newest one that the partition had a part in, as parent or as child.
	Split partitions.Split `json:"split,omitzero"`
}

// Stored is the newest marker of a partition. The zero value means that nothing
// was ever committed for it.
type Stored struct {
	Marker
	// Seq is the marker's sequence in OUTCOMES: the fence of the next commit. 0 if
	// there is none.
	Seq uint64
	// Time is when the server stored it.
	Time time.Time

	commit string // id of the commit that it ends
}

// markerText is the marker in its header. The id of the commit identifies it among
// all, even among those with the same marker.
type markerText struct {
	Marker
	Commit string `json:"commit"`
}

// maxMarkerWait bounds how long one try waits for the newest marker. The message
// that carries it may have 8 MiB, and the way may be slow.
const maxMarkerWait = 30 * time.Second

// maxWait is how long the next try waits for the newest marker; twice as long after each
// try without an answer.
type maxWait time.Duration

// end reads how a partition ends, by read, once a leader answers: a request to an old leader, or
// to none, would wait for long in vain.
func (w *maxWait) end(ctx context.Context, js jetstream.JetStream, read func(timeout time.Duration) (end, error)) (end, error) {
	soon, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	if _, err := topology.State(soon, js, topology.OutcomesStream); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = jsapi.ErrNoAnswer
		}
		return end{}, err
	}
	e, err := read(time.Duration(*w))
	if errors.Is(err, jsapi.ErrNoAnswer) {
		*w = min(2**w, maxWait(maxMarkerWait))
	}
	return e, err
}

// parseHeader reads the marker off a message of OUTCOMES; false when it has none.
func parseHeader(h nats.Header) (markerText, bool, error) {
	v := h[HeaderMarker]
	if len(v) == 0 {
		return markerText{}, false, nil
	}
	var t markerText
	if err := events.Unmarshal([]byte(v[0]), &t); err != nil {
		return markerText{}, false, fmt.Errorf("parse %s: %w", HeaderMarker, err)
	}
	return t, true, nil
}

func (t markerText) text() (string, error) {
	// An id that is not UTF-8 must not keep a partition from committing.
	t.LastID = strings.ToValidUTF8(t.LastID, "\uFFFD")
	b, err := events.Marshal(t)
	return string(b), err
}
