package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events/codec"
)

// chunkBytes is the size of a chunk of a snapshot, if the server accepts it. Each chunk waits
// for its acknowledgement, so small ones would be slow.
const chunkBytes = 512 << 10

// Upload is a running upload of a snapshot. Every chunk has a fence: the server stores it only
// if no other owner changed the description of the partition's snapshot. So an owner that was
// suspended adds nothing to a newer snapshot, and nothing after an erasure. The object store of
// nats.go has no such fence; the format is the same.
type Upload struct {
	js        jetstream.JetStream
	partition int
	object    string
	fence     uint64
	replaces  *Snapshot // may be nil

	sum    hash.Hash
	bytes  uint64
	chunks uint32
}

// Begin starts an upload. Call it before the file is copied: an erasure after Begin makes the
// upload fail, so the upload cannot put erased content back.
func (s *Store) Begin(ctx context.Context, partition int) (*Upload, error) {
	u := &Upload{js: s.js, partition: partition, object: snapshotName(partition) + "-" + nuid.Next(), sum: sha256.New()}
	var err error
	if u.replaces, u.fence, err = s.newest(ctx, partition); u.fence > 0 {
		err = nil // an unreadable description is replaced
	}
	if err == nil && u.fence == 0 {
		// A fence of 0 would hold before and after an erasure.
		err = u.publishInfo(ctx, &jetstream.ObjectInfo{Deleted: true})
	}
	if err != nil {
		return nil, fmt.Errorf("begin snapshot of partition %d: %w", partition, err)
	}
	return u, nil
}

// Replaces returns the newest snapshot at the begin of the upload, or nil.
func (u *Upload) Replaces() *Snapshot { return u.replaces }

// Put uploads the file in r, makes it the newest snapshot of its partition, and removes older
// ones and parts of abandoned uploads. m is the position of its ledgers, outcomes their
// position in OUTCOMES. Call Put once.
//
// [ErrMoved]: the upload was too late and left nothing. After any other error either this
// snapshot or the previous one is the newest.
func (u *Upload) Put(ctx context.Context, m commit.Marker, outcomes uint64, r io.Reader) error {
	err := u.put(ctx, m, outcomes, r)
	if errors.Is(err, ErrMoved) {
		err = u.reconcile(ctx, err)
	}
	if err == nil {
		err = u.sweep(ctx)
	}
	return jsapi.Wrap(err, "put snapshot of partition %d", u.partition)
}

// reconcile checks whether this upload's own message, with a lost answer, moved the fence.
// If not, it removes the uploaded chunks.
func (u *Upload) reconcile(ctx context.Context, moved error) error {
	s := Store{u.js}
	newest, err := s.Newest(ctx, u.partition)
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	if newest != nil && newest.object == u.object {
		return nil
	}
	return errors.Join(moved, s.purge(ctx, jetstream.WithPurgeSubject(chunkSubject(u.object))))
}

func (u *Upload) put(ctx context.Context, m commit.Marker, outcomes uint64, r io.Reader) error {
	marker, err := codec.Marshal(m)
	if err != nil {
		return err
	}
	size := min(chunkBytes, connect.MaxPayload(u.js.Conn())-headerBytes)
	chunk := make([]byte, size)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			if err := u.publishChunk(ctx, chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	return u.publishInfo(ctx, &jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Metadata: map[string]string{metaMarker: string(marker), metaOutcomes: strconv.FormatUint(outcomes, 10)},
			Opts:     &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)},
		},
		Size: u.bytes, Chunks: u.chunks, Digest: jetstream.GetObjectDigestValue(u.sum),
	})
}

// headerBytes is reserved for the headers of a chunk.
const headerBytes = 4 << 10

func (u *Upload) publishChunk(ctx context.Context, data []byte) error {
	u.sum.Write(data)
	u.bytes, u.chunks = u.bytes+uint64(len(data)), u.chunks+1
	_, err := u.publish(ctx, &nats.Msg{Subject: chunkSubject(u.object), Data: data, Header: nats.Header{}}, strconv.Itoa(int(u.chunks)))
	return err
}

// publishInfo replaces the description of the partition's snapshot.
func (u *Upload) publishInfo(ctx context.Context, info *jetstream.ObjectInfo) error {
	info.Name, info.Bucket, info.NUID = snapshotName(u.partition), topology.SnapshotsBucket, u.object
	data, err := codec.Marshal(info)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: metaSubject(u.partition), Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	u.fence, err = u.publish(ctx, m, "info-"+strconv.FormatBool(info.Deleted))
	return err
}

// publish sends a message with the fence until it is stored, finally refused, or ctx ends.
// Its id prevents a second copy after a lost answer.
func (u *Upload) publish(ctx context.Context, m *nats.Msg, id string) (seq uint64, err error) {
	m.Header[nats.MsgIdHdr] = []string{u.object + "-" + id}
	m.Header[jsapi.HeaderFence] = []string{strconv.FormatUint(u.fence, 10)}
	m.Header[jsapi.HeaderFenceSubject] = []string{metaSubject(u.partition)}
	err = jsapi.Retry(ctx, nil, func() error {
		one, cancel := context.WithTimeout(ctx, jsapi.Timeout)
		defer cancel()
		ack, err := u.js.PublishMsg(one, m)
		if err == nil {
			seq = ack.Sequence
			return nil
		}
		return classifyUpload(ctx, err)
	})
	return seq, err
}

// classifyUpload decides whether an upload is retried after an error.
func classifyUpload(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return retry.Final(ctx.Err())
	case jsapi.HasCode(err, jsapi.CodeWrongLastSequence):
		return retry.Final(ErrMoved)
	case jsapi.HasCode(err, jsapi.CodeWrongLastConstant, jsapi.CodeSequenceNotReady), jsapi.Republish(err):
		return err
	default:
		return retry.Final(err)
	}
}

// sweep removes all chunks of the partition except those of this upload.
func (u *Upload) sweep(ctx context.Context) error {
	s, subjects := Store{u.js}, map[string]uint64(nil)
	err := s.withStream(ctx, func(stream jetstream.Stream) error {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(chunksPrefix+">"))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list chunks: %w", err)
	}
	for subject := range subjects {
		if !isPartOf(subject, u.partition) || subject == chunkSubject(u.object) {
			continue
		}
		if err := s.purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return fmt.Errorf("remove chunks: %w", err)
		}
	}
	return nil
}
