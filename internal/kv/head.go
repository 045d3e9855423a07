package kv

import (
	"encoding/binary"
	"fmt"
)

// Position is the log position of a checkpoint. On open the caller compares it with the log, which
// may be a different one or truncated. A file without a checkpoint has the zero Position.
type Position struct {
	Cursor     uint64 // last event applied
	Chain      uint64 // hash over the partition's events up to Cursor
	LastID     string // id of the event at Cursor
	LastTime   int64  // its time, Unix ms
	LogCreated int64  // creation of SESSIONS, Unix ns
	Config     string // hash of the config in force
	Outcomes   uint64 // sequence in OUTCOMES of the last commit that the ledgers contain
}

// formatVersion is the version of docs/format/ledger-file.md and of the rows of package compaction.
// Raise it with every change of a row's name, layout or members. Otherwise a worker of another
// version would fail to decode the row, in the file and in every snapshot, or drop a new member
// and decide differently from a replay of the log.
const formatVersion = 5

// head is the only row of the bucket meta: the position, the count and digest of the rows, and the
// partition, boot and flags of the writer.
type head struct {
	format     uint32
	partition  uint32
	partitions uint32
	// clean: closed, with everything on disk.
	clean bool
	// synced: every checkpoint reached the disk before it returned.
	synced   bool
	boot     string // boot id of the machine that wrote it
	rows     uint64
	digest   digest
	position Position
}

// fresh reports whether the file holds no checkpoint.
func (h *head) fresh() bool { return h.format == 0 }

const (
	flagClean  = 1
	flagSynced = 2
)

func (h *head) encode() []byte {
	var flags uint32
	if h.clean {
		flags |= flagClean
	}
	if h.synced {
		flags |= flagSynced
	}
	le := binary.LittleEndian
	var b []byte
	for _, v := range []uint32{h.format, h.partition, h.partitions, flags} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint64{
		h.rows, h.digest.hi, h.digest.lo,
		h.position.Cursor, h.position.Chain, uint64(h.position.LastTime), uint64(h.position.LogCreated), h.position.Outcomes,
	} {
		b = le.AppendUint64(b, v)
	}
	for _, s := range []string{h.boot, h.position.LastID, h.position.Config} {
		b = le.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// decodeHead is the inverse of encode. The first field is the format and the last the checksum in
// every version, so another version is distinguished from damage.
func decodeHead(b []byte) (*head, error) {
	r := reader{b: b}
	h := &head{format: r.uint32()}
	if h.format != formatVersion {
		return nil, fmt.Errorf("%w: version %d, this is version %d", ErrOtherFormat, h.format, formatVersion)
	}
	h.partition, h.partitions = r.uint32(), r.uint32()
	flags := r.uint32()
	h.clean, h.synced = flags&flagClean != 0, flags&flagSynced != 0
	h.rows, h.digest.hi, h.digest.lo = r.uint64(), r.uint64(), r.uint64()
	h.position.Cursor, h.position.Chain = r.uint64(), r.uint64()
	h.position.LastTime, h.position.LogCreated = int64(r.uint64()), int64(r.uint64())
	h.position.Outcomes = r.uint64()
	h.boot, h.position.LastID, h.position.Config = r.string(), r.string(), r.string()
	if r.short || len(r.b) != 0 {
		return nil, fmt.Errorf("%w: meta row of %d bytes", ErrDamaged, len(b))
	}
	return h, nil
}

// reader takes fields off b. short reports that b ended too early.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.short = nil, true
		return make([]byte, min(n, 8))
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) string() string { return string(r.take(int(r.uint32()))) }
