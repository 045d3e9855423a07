package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/plain.db has pages of 512 bytes, so that its table is a tree, and its long text on
// further pages. testdata/log.db has a row in its file, one that was committed to its log, and
// one that was not. Both were written by SQLite 3.40 from testdata/*.sql.

func rows(t *testing.T, path, table string, columns ...string) (out []string) {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tab, err := db.Table(table, columns...)
	if err != nil {
		t.Fatal(err)
	}
	for ref, err := range tab.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		row, err := tab.Read(ref)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range row {
			if s, ok := v.(string); ok && len(s) > 40 {
				row[i] = fmt.Sprintf("%d of %q", len(s), s[len(s)-3:])
			}
		}
		out = append(out, fmt.Sprint(row))
	}
	return out
}

// Rows come with the columns that were named, in the order of their rowids, whatever page
// they are on.
func TestRows(t *testing.T) {
	got := rows(t, "testdata/plain.db", "part", "id", "n", "data", "later", "none")
	if len(got) != 64 {
		t.Fatalf("%d rows", len(got))
	}
	want := []string{
		"[p1 0 one <nil> <nil>]", "[p2 1 10000 of \"xyz\" <nil> <nil>]", "[p3 -1 <nil> <nil> <nil>]", "[p4 9007199254740993 [0 255] added <nil>]", "[p5 -300 five <nil> <nil>]",
	}
	if diff := cmp.Diff(want, got[:5]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := got[63]; last != "[p64 70000 row 64 <nil> <nil>]" {
		t.Errorf("the last row is %s", last)
	}
}

// Rows that were committed to the log are read in place of those of the file.
func TestLog(t *testing.T) {
	if diff := cmp.Diff([]string{"[a new]", "[b two]"}, rows(t, "testdata/log.db", "message", "id", "data")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColumns(t *testing.T) {
	for sql, want := range map[string]string{
		"CREATE TABLE `part` (\n\t`id` text PRIMARY KEY,\n\t`data` text NOT NULL,\n\tCONSTRAINT `fk` FOREIGN KEY (`id`, `data`) REFERENCES `m`(`id`)\n)": "id data",
		`CREATE TABLE x(a INT DEFAULT (1+(2)), "b" DECIMAL(10,2), [c], PRIMARY KEY (a, b))`:                                                              "a b c",
		"": "",
	} {
		if got := strings.Join(columnsOf(sql), " "); got != want {
			t.Errorf("%q, want %q, of %s", got, want, sql)
		}
	}
}

func TestNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrFormat) {
		t.Errorf("opened text: %v", err)
	}
	db, err := Open("testdata/plain.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Table("nothing"); !errors.Is(err, ErrFormat) {
		t.Errorf("found nothing: %v", err)
	}
}

// Whatever a file holds, reading it ends.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"testdata/plain.db", "testdata/log.db"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(path)
		if err != nil {
			return
		}
		defer db.Close()
		tab, err := db.Table("part", "id", "data")
		if err != nil {
			return
		}
		n := 0
		for ref, err := range tab.Rows() {
			if err != nil {
				return
			}
			if n++; n > len(data) {
				t.Fatalf("%d rows in %d bytes", n, len(data))
			}
			_, _ = tab.Read(ref)
		}
	})
}

// A log that claims pages that are nowhere makes no tree of loops larger.
func TestPagesOfLog(t *testing.T) {
	data, err := os.ReadFile("testdata/plain.db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	part, err := db.Table("part", "id")
	if err != nil {
		t.Fatal(err)
	}
	pages, size := int(db.pages), db.size
	db.Close()

	// The root and the page behind it have 60 children each: the next one, again and again.
	tree := func(child uint32) []byte {
		page := make([]byte, size)
		page[0] = interior
		binary.BigEndian.PutUint16(page[3:], 60)
		binary.BigEndian.PutUint32(page[8:], child)
		for i := range 60 {
			binary.BigEndian.PutUint16(page[12+2*i:], uint16(size-8))
		}
		binary.BigEndian.PutUint32(page[size-8:], child)
		return page
	}
	empty := make([]byte, size)
	empty[0] = leaf
	log := writeLog(size, part.root, tree(part.root+1), tree(part.root+2), empty)
	if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if db.pages != math.MaxUint32 {
		t.Fatalf("%d pages: the log was not read", db.pages)
	}
	part.db = db
	read := pages + 3
	if got := db.readable(); got != read {
		t.Errorf("%d pages, of %d can be read", got, read)
	}
	var failed error
	for _, err := range part.Rows() {
		failed = err
	}
	if !errors.Is(failed, ErrFormat) {
		t.Errorf("3,722 pages of %d were read: %v", read, failed)
	}
}

// writeLog is a write-ahead log of pages that follow each other, in one transaction. It claims as many pages as there
// can be.
func writeLog(size int, first uint32, pages ...[]byte) []byte {
	order := binary.BigEndian
	head := make([]byte, walHeader)
	order.PutUint32(head, 0x377f0682)
	order.PutUint32(head[8:], uint32(size))
	sum := checksum{order: binary.LittleEndian}
	sum.add(head[:24])
	order.PutUint32(head[24:], sum.a)
	order.PutUint32(head[28:], sum.b)
	out := head
	for i, page := range pages {
		frame := make([]byte, frameHeader)
		order.PutUint32(frame, first+uint32(i))
		if i == len(pages)-1 {
			order.PutUint32(frame[4:], math.MaxUint32)
		}
		sum.add(frame[:8])
		sum.add(page)
		order.PutUint32(frame[16:], sum.a)
		order.PutUint32(frame[20:], sum.b)
		out = append(append(out, frame...), page...)
	}
	return out
}
