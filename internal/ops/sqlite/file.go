package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
)

// ErrFormat: the file is not of SQLite, or is damaged.
var ErrFormat = errors.New("no readable file of SQLite")

// Magic begins a file.
const Magic = "SQLite format 3\x00"

// Sizes of headers, in bytes.
const (
	fileHeader  = 100
	walHeader   = 32
	frameHeader = 24
)

// DB is an open file.
type DB struct {
	file, wal *os.File // the log may be absent
	size      int      // of a page, in bytes
	usable    int      // of it, for content
	pages     uint32
	filed     uint32           // pages in the file
	logged    map[uint32]int64 // pages in the log, by where they are
}

// Open opens a file, and its write-ahead log where there is one.
func Open(path string) (*DB, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	db := &DB{file: f}
	if err := db.readHeader(); err != nil {
		db.Close()
		return nil, err
	}
	if db.wal, err = os.Open(path + "-wal"); err == nil {
		err = db.readLog()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close closes the file.
func (db *DB) Close() {
	_ = db.file.Close()
	if db.wal != nil {
		_ = db.wal.Close()
	}
}

func (db *DB) readHeader() error {
	head := make([]byte, fileHeader)
	if _, err := db.file.ReadAt(head, 0); err != nil || string(head[:len(Magic)]) != Magic {
		return ErrFormat
	}
	if db.size = int(binary.BigEndian.Uint16(head[16:])); db.size == 1 {
		db.size = 1 << 16
	}
	db.usable = db.size - int(head[20])
	info, err := db.file.Stat()
	if err != nil {
		return err
	}
	if db.size < 512 || db.size&(db.size-1) != 0 || db.usable < 480 {
		return fmt.Errorf("%w: a page has %d bytes", ErrFormat, db.size)
	}
	if encoding := binary.BigEndian.Uint32(head[56:]); encoding > 1 {
		return fmt.Errorf("%w: its texts are in UTF-16", ErrFormat)
	}
	db.filed = uint32(min(info.Size()/int64(db.size), 1<<32-2))
	db.pages = db.filed
	return nil
}

// readLog finds the pages of committed transactions. A frame that is of an older round, or
// torn, ends the log.
func (db *DB) readLog() error {
	head := make([]byte, walHeader)
	if _, err := db.wal.ReadAt(head, 0); err != nil {
		return nil //nolint:nilerr // an empty log
	}
	magic := binary.BigEndian.Uint32(head)
	if magic&^1 != 0x377f0682 || int(binary.BigEndian.Uint32(head[8:])) != db.size {
		return nil
	}
	sum := checksum{order: binary.LittleEndian}
	if magic&1 == 1 {
		sum.order = binary.BigEndian
	}
	sum.add(head[:24])
	if !sum.is(head[24:]) {
		return nil
	}
	db.logged = map[uint32]int64{}
	pending := map[uint32]int64{}
	frame := make([]byte, frameHeader+db.size)
	for at := int64(walHeader); ; at += int64(len(frame)) {
		if _, err := db.wal.ReadAt(frame, at); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		if string(frame[8:16]) != string(head[16:24]) || !sum.is(frame[16:]) {
			return nil
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 { // a commit
			maps.Copy(db.logged, pending)
			clear(pending)
			db.pages = pages
		}
	}
}

// checksum is the running sum of a log.
type checksum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (s *checksum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		s.a += s.order.Uint32(data) + s.b
		s.b += s.order.Uint32(data[4:]) + s.a
	}
}

func (s *checksum) is(data []byte) bool {
	return binary.BigEndian.Uint32(data) == s.a && binary.BigEndian.Uint32(data[4:]) == s.b
}

// readable bounds the number of pages, whatever a log claims.
func (db *DB) readable() int { return int(min(int64(db.pages), int64(db.filed)+int64(len(db.logged)))) }

// page reads a page; they count from 1.
func (db *DB) page(n uint32) ([]byte, error) {
	if n == 0 || n > db.pages {
		return nil, fmt.Errorf("%w: there is no page %d", ErrFormat, n)
	}
	data := make([]byte, db.size)
	f, at := db.file, int64(n-1)*int64(db.size)
	if where, ok := db.logged[n]; ok {
		f, at = db.wal, where
	}
	if _, err := f.ReadAt(data, at); err != nil {
		return nil, fmt.Errorf("%w: page %d: %w", ErrFormat, n, err)
	}
	return data[:db.usable], nil
}
