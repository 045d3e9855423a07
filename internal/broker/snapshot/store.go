package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events/codec"
)

var (
	// ErrNone: the store holds no snapshot of the partition.
	ErrNone = errors.New("there is no snapshot")
	// ErrGone: a snapshot is no longer complete. It was replaced by a newer one, erased, or
	// damaged.
	ErrGone = errors.New("the snapshot is not whole: it was replaced, erased, or damaged")
	// ErrMoved: another owner put a snapshot, or all snapshots were erased, since an
	// upload began. The upload is removed.
	ErrMoved = errors.New("snapshots of the partition changed since the upload began")
)

// Snapshot describes a copy of a partition's ledger file at one of its checkpoints.
type Snapshot struct {
	Partition int
	// Marker is the position of the ledgers, and their owner.
	Marker commit.Marker
	// Outcomes is the position of the ledgers in OUTCOMES.
	Outcomes uint64
	// Bytes is the size of the file, Time the time at which the server stored the description.
	Bytes uint64
	Time  time.Time

	object string // names its chunks
	chunks uint32
	digest string
}

// Store is the object store of snapshots. It is safe for concurrent use.
type Store struct{ js jetstream.JetStream }

// New returns the store that [topology.Ensure] created.
func New(js jetstream.JetStream) *Store { return &Store{js} }

// Newest describes the newest snapshot of a partition. It reads from the leader of the
// store and retries until it has an answer or ctx ends. [ErrNone]: there is no snapshot.
func (s *Store) Newest(ctx context.Context, partition int) (newest *Snapshot, err error) {
	newest, _, err = s.newest(ctx, partition)
	if err == nil && newest == nil {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("newest snapshot of partition %d: %w", partition, err)
	}
	return newest, nil
}

// newest returns the newest snapshot, or nil, and the sequence of the message that
// describes it, or 0.
func (s *Store) newest(ctx context.Context, partition int) (*Snapshot, uint64, error) {
	m, err := jsapi.AwaitFromLeader(ctx, s.js.Conn(), topology.SnapshotsStream, jsapi.GetRequest{LastFor: metaSubject(partition)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var info jetstream.ObjectInfo
	if err := codec.Unmarshal(m.Data, &info); err != nil {
		return nil, m.Seq, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	if info.Deleted {
		return nil, m.Seq, nil
	}
	found := &Snapshot{Partition: partition, Bytes: info.Size, Time: m.Time, object: info.NUID, chunks: info.Chunks, digest: info.Digest}
	if err := codec.Unmarshal([]byte(info.Metadata[metaMarker]), &found.Marker); err != nil {
		return nil, m.Seq, fmt.Errorf("message %d: marker: %w", m.Seq, err)
	}
	found.Outcomes = jsapi.ParseSeq(info.Metadata[metaOutcomes])
	return found, m.Seq, nil
}

// Read writes the bytes of a snapshot to w. After an error the bytes in w are useless:
// [ErrGone] if they are not the bytes that were put, or an error of w or of the server.
// While a cluster elects a leader, a snapshot may seem to be gone: read the newest again.
func (s *Store) Read(ctx context.Context, snapshot *Snapshot, w io.Writer) error {
	sum, size, chunks := sha256.New(), uint64(0), uint32(0)
	err := stream.ReadStream(ctx, s.js, topology.SnapshotsStream, chunkSubject(snapshot.object), 0, 0, func(m jetstream.Msg, _ uint64) error {
		sum.Write(m.Data())
		size, chunks = size+uint64(len(m.Data())), chunks+1
		_, err := w.Write(m.Data())
		return err
	})
	if err == nil && (chunks != snapshot.chunks || size != snapshot.Bytes || jetstream.GetObjectDigestValue(sum) != snapshot.digest) {
		err = ErrGone
	}
	return jsapi.Wrap(err, "read snapshot of partition %d", snapshot.Partition)
}

// Erase removes the snapshots of all partitions from the server's disk, including replaced
// ones and parts of abandoned uploads. Every running upload ends with [ErrMoved], so no
// content of a ledger file from before the call returns after it. On a server with replicas
// the bytes leave the Raft logs somewhat later, at their next compaction.
//
// Erase includes the other partitions because the server frees the bytes of a whole stream at
// once, but those of single messages only later. Every owner uploads a new
// snapshot when it is next due; until then a take-over reads the log instead.
func (s *Store) Erase(ctx context.Context) error {
	err := s.purge(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return jsapi.Wrap(err, "erase snapshots")
}

func (s *Store) purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	return s.withStream(ctx, func(stream jetstream.Stream) error { return stream.Purge(ctx, opts...) })
}

// withStream calls op with the store's stream, and retries until the server answers or ctx ends.
func (s *Store) withStream(ctx context.Context, op func(jetstream.Stream) error) error {
	return jsapi.Retry(ctx, nil, func() error {
		stream, err := s.js.Stream(ctx, topology.SnapshotsStream)
		if err == nil {
			err = op(stream)
		}
		if err != nil {
			return jsapi.Transient(err)
		}
		return nil
	})
}

// Metadata keys of an object.
const (
	metaMarker   = "compactd-marker"
	metaOutcomes = "compactd-outcomes"
)

func snapshotName(partition int) string { return "p" + strconv.Itoa(partition) }

// metaSubject returns the subject of the description of a snapshot.
func metaSubject(partition int) string {
	return "$O." + topology.SnapshotsBucket + ".M." + base64.URLEncoding.EncodeToString([]byte(snapshotName(partition)))
}

// chunksPrefix begins the subject of every chunk. After it comes the name of the object, which
// begins with the name of the snapshot and a dash. So parts of an abandoned upload are found by
// their partition.
const chunksPrefix = "$O." + topology.SnapshotsBucket + ".C."

func chunkSubject(object string) string { return chunksPrefix + object }

// isPartOf reports whether a chunk's subject belongs to a partition.
func isPartOf(subject string, partition int) bool {
	return strings.HasPrefix(subject, chunksPrefix+snapshotName(partition)+"-")
}
