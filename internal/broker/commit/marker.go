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
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
)

// HeaderMarker carries the [Marker] on the last message of every commit.
const HeaderMarker = "Compactd-Marker"

// Marker holds the position up to which a partition is decided, and the owner. The last
// message of every commit carries one.
type Marker struct {
	// Cursor is the sequence of the last log event whose outcomes are stored.
	Cursor uint64 `json:"cursor"`
	// Owner and Epoch identify the writer. Every take-over adds one to Epoch. A
	// [Committer] sets both.
	Owner string `json:"owner"`
	Epoch uint64 `json:"epoch"`
	// Config is the hash of the config for the next events.
	Config string `json:"config"`
	// Before is the hash of the config of the events up to Cursor, if it differs. An
	// erasure may have removed the previous marker, which has it too. A [Committer]
	// sets it at a take-over.
	Before string `json:"before,omitzero"`
	// Chain is a hash over the partition's events up to Cursor.
	Chain uint64 `json:"chain"`
	// LastID and LastTime, in Unix milliseconds, belong to the event at Cursor.
	// They do not match a different or truncated log.
	LastID   string `json:"last_id"`
	LastTime int64  `json:"last_time"`
	// LogCreated is the creation time of the log of Cursor, in Unix nanoseconds.
	LogCreated int64 `json:"log_created"`
	// Taken marks the commit of a take-over.
	Taken bool `json:"taken,omitzero"`
	// Split is the newest split of the partition, as parent or as child.
	Split partitions.Split `json:"split,omitzero"`
}

// Stored is a marker in OUTCOMES. As the newest marker of a partition, the zero value
// means that the partition has no commit.
type Stored struct {
	Marker
	// Seq is the marker's sequence in OUTCOMES: the fence of the next commit. 0 without
	// a marker.
	Seq uint64
	// Time is the server's time of storage.
	Time time.Time

	commit string // id of the commit that it ends
}

// markerText is the marker in its header. The id of the commit distinguishes it from
// others with an equal marker.
type markerText struct {
	Marker
	Commit string `json:"commit"`
}

// maxMarkerWait limits the wait of one attempt for the newest marker. Its message may have
// 8 MiB, and the network may be slow.
const maxMarkerWait = 30 * time.Second

// maxWait limits the wait of the next attempt for the newest marker. It doubles after each
// attempt without an answer.
type maxWait time.Duration

// end calls read for the end of a partition, once a leader answers: a request to a former leader,
// or without a leader, would wait for its whole timeout.
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

// parseHeader reads the marker of a message of OUTCOMES; false without a marker.
func parseHeader(h nats.Header) (markerText, bool, error) {
	v := h[HeaderMarker]
	if len(v) == 0 {
		return markerText{}, false, nil
	}
	var t markerText
	if err := codec.Unmarshal([]byte(v[0]), &t); err != nil {
		return markerText{}, false, fmt.Errorf("parse %s: %w", HeaderMarker, err)
	}
	return t, true, nil
}

func (t markerText) text() (string, error) {
	// An id that is not UTF-8 must not block the commits of a partition.
	t.LastID = strings.ToValidUTF8(t.LastID, "\uFFFD")
	b, err := codec.Marshal(t)
	return string(b), err
}
