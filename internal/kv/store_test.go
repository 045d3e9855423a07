package kv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

func address(session string) events.Address {
	return events.Address{Tenant: events.DefaultTenant, Session: session}
}

func row(name, data string) compaction.Row { return compaction.Row{Name: name, Data: []byte(data)} }

func options(t *testing.T) Options {
	return Options{Path: filepath.Join(t.TempDir(), "kv", "ledgers-3.db"), Partition: 3, Partitions: 8, BootID: "boot", LockWait: 50 * time.Millisecond}
}

func checkpoint(t *testing.T, s *Store, m Position, changes ...Change) {
	t.Helper()
	if err := s.Checkpoint(m, changes); err != nil {
		t.Fatal(err)
	}
}

// The parts of a change, alone and together.
func TestCheckpoint(t *testing.T) {
	a, b := address("a"), address("a-b") // one address begins with the other
	for _, c := range []struct {
		name    string
		changes []Change
		want    model
	}{
		{
			"adds a row",
			[]Change{{Address: a, Rows: []compaction.Row{row("c1", "new")}}},
			model{a: {"head": "A", "c0": "A0", "c1": "new"}, b: {"head": "B"}},
		},
		{
			"replaces a row",
			[]Change{{Address: a, Rows: []compaction.Row{row("c0", "")}}},
			model{a: {"head": "A", "c0": ""}, b: {"head": "B"}},
		},
		{
			"replaces all rows",
			[]Change{{Address: a, Replace: true, Rows: []compaction.Row{row("head", "new")}}},
			model{a: {"head": "new"}, b: {"head": "B"}},
		},
		{"replaces all rows by none", []Change{{Address: a, Replace: true}}, model{b: {"head": "B"}}},
		{"drops", []Change{{Address: a, Drop: true}}, model{b: {"head": "B"}}},
		{
			"drops what is not there",
			[]Change{{Address: address("x"), Drop: true}},
			model{a: {"head": "A", "c0": "A0"}, b: {"head": "B"}},
		},
		{"keeps the order of one ledger", []Change{
			{Address: b, Rows: []compaction.Row{row("c9", "9")}},
			{Address: a, Drop: true},
			{Address: b, Rows: []compaction.Row{row("c9", "nine")}},
			{Address: a, Rows: []compaction.Row{row("head", "again")}},
		}, model{a: {"head": "again"}, b: {"head": "B", "c9": "nine"}}},
		{
			"takes the last of two rows",
			[]Change{{Address: address("x"), Rows: []compaction.Row{row("z", "1"), row("a", "2"), row("z", "3")}}},
			model{a: {"head": "A", "c0": "A0"}, b: {"head": "B"}, address("x"): {"a": "2", "z": "3"}},
		},
		{"moves the pos alone", nil, model{a: {"head": "A", "c0": "A0"}, b: {"head": "B"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			s := mustOpen(t, o)
			checkpoint(t, s, positionAt(1),
				Change{Address: b, Rows: []compaction.Row{row("head", "B")}},
				Change{Address: a, Rows: []compaction.Row{row("head", "A"), row("c0", "A0")}})
			checkpoint(t, s, positionAt(2), c.changes...)
			check(t, s, positionAt(2), c.want)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, o)
			defer s.Abandon()
			check(t, s, positionAt(2), c.want)
		})
	}
}

// A text that cannot be a key changes nothing.
func TestCheckpointRefuses(t *testing.T) {
	s := mustOpen(t, options(t))
	defer s.Abandon()
	for name, c := range map[string]Change{
		"tenant":         {Address: events.Address{Tenant: "a.b", Session: "s"}},
		"zero byte":      {Address: address("a\x00b")},
		"no session":     {Address: events.Address{Tenant: "a"}},
		"empty name":     {Address: address("a"), Rows: []compaction.Row{row("", "")}},
		"long name":      {Address: address("a"), Rows: []compaction.Row{row(strings.Repeat("a", 17), "")}},
		"upper case":     {Address: address("a"), Rows: []compaction.Row{row("Head", "")}},
		"drop with rows": {Address: address("a"), Drop: true, Rows: []compaction.Row{row("a", "")}},
	} {
		if err := s.Checkpoint(positionAt(1), []Change{{Address: address("ok"), Rows: []compaction.Row{row("a", "")}}, c}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	check(t, s, Position{}, model{})
	if _, err := s.Load(address("a\x00b")); err == nil {
		t.Error("load of a bad address")
	}
	if rows, err := s.Load(address("unknown")); rows != nil || err != nil {
		t.Errorf("unknown session: %v, %v", rows, err)
	}
}

// The longest key that can be, and an id at the length limit.
func TestLongestKey(t *testing.T) {
	o := options(t)
	a := events.Address{Tenant: strings.Repeat("t", events.MaxTenantLen), Session: strings.Repeat("S", events.MaxIDLen)}
	want := model{a: {strings.Repeat("z", maxNameBytes): "x"}}
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1), Change{Address: a, Rows: []compaction.Row{row(strings.Repeat("z", maxNameBytes), "x")}})
	s.Abandon()
	s = mustOpen(t, o)
	defer s.Abandon()
	check(t, s, positionAt(1), want)
}

func TestOptions(t *testing.T) {
	_, _, err := Open(Options{Partition: 8, Partitions: 8, LockWait: -1})
	for _, part := range []string{"path is empty", "partition 8 of 8", "lock wait"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// Only the owner may look at what agents talk about.
func TestFileModes(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	defer s.Abandon()
	for path, want := range map[string]fs.FileMode{o.Path: 0o600, filepath.Dir(o.Path): 0o700 | fs.ModeDir} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

// rewriteHead changes the meta row as another program would have written it.
func rewriteHead(t *testing.T, path string, change func(*head)) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bolt.Tx) error {
		h, err := headOf(tx)
		if err != nil {
			return err
		}
		change(h)
		return tx.Bucket(bucketMeta).Put(keyHead, appendValue(nil, keyHead, h.encode()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Files that are quarantined, and files that are not.
func TestTrust(t *testing.T) {
	for _, c := range []struct {
		name    string
		sync    bool
		close   bool
		between func(*testing.T, *Options)
		want    error
	}{
		{name: "left open by this boot"},
		{name: "left open by another boot", between: func(t *testing.T, o *Options) { o.BootID = "other" }, want: ErrOtherBoot},
		{name: "boot unknown", between: func(t *testing.T, o *Options) {
			rewriteHead(t, o.Path, func(h *head) { h.boot = "" })
		}, want: ErrOtherBoot},
		{name: "synced, another boot", sync: true, between: func(t *testing.T, o *Options) { o.BootID = "other" }},
		{name: "closed, another boot", close: true, between: func(t *testing.T, o *Options) { o.BootID = "other" }},
		{name: "another partition", close: true, between: func(t *testing.T, o *Options) { o.Partition = 4 }, want: ErrOtherPartition},
		{name: "other partitions", close: true, between: func(t *testing.T, o *Options) { o.Partitions = 12 }, want: ErrOtherPartition},
		{name: "fewer partitions", close: true, between: func(t *testing.T, o *Options) { o.Partitions = 4 }, want: ErrOtherPartition},
		{name: "a log that has grown twice", close: true, between: func(t *testing.T, o *Options) { o.Partitions = 32 }},
		{name: "split off", close: true, between: func(t *testing.T, o *Options) { o.Partition, o.Partitions = 11, 16 }, want: ErrOtherPartition},
		{name: "inherited", close: true, between: func(t *testing.T, o *Options) { o.Partition, o.Partitions, o.Inherited = 11, 16, true }},
		{name: "of the future", close: true, between: func(t *testing.T, o *Options) {
			rewriteHead(t, o.Path, func(h *head) { h.format = formatVersion + 1 })
		}, want: ErrOtherFormat},
		{name: "a row too many", close: true, between: func(t *testing.T, o *Options) {
			rewriteHead(t, o.Path, func(h *head) { h.rows++ })
		}, want: ErrDamaged},
		{name: "another digest", close: true, between: func(t *testing.T, o *Options) {
			rewriteHead(t, o.Path, func(h *head) { h.digest = h.digest.add(digest{lo: 1}) })
		}, want: ErrDamaged},
		{name: "not a bbolt file", between: func(t *testing.T, o *Options) {
			if err := os.WriteFile(o.Path, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}, want: ErrDamaged},
		{name: "a foreign bbolt file", between: func(t *testing.T, o *Options) {
			if err := os.Remove(o.Path); err != nil {
				t.Fatal(err)
			}
			db, err := bolt.Open(o.Path, 0o600, &bolt.Options{NoFreelistSync: true, PageSize: pageSize})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }); err != nil {
				t.Fatal(err)
			}
		}, want: ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			o.Sync = c.sync
			s := mustOpen(t, o)
			m := model{address("a"): {"head": "A"}}
			checkpoint(t, s, positionAt(1), Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}})
			if !c.close {
				s.Abandon()
			} else if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.between != nil {
				c.between(t, &o)
			}
			before, err := os.ReadFile(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			s, set, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { s.Abandon() }()
			if c.want == nil {
				if set != nil {
					t.Fatalf("quarantined: %v", set.Reason)
				}
				check(t, s, positionAt(1), m)
				return
			}
			if set == nil || !errors.Is(set.Reason, c.want) {
				t.Fatalf("quarantined: %+v, want %v", set, c.want)
			}
			after, err := os.ReadFile(set.Moved)
			if err != nil || !slices.Equal(before, after) {
				t.Errorf("the quarantined file is another one: %v", err)
			}
			check(t, s, Position{}, model{})
			checkpoint(t, s, positionAt(1), Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}})
			s.Abandon()
			s = mustOpen(t, o)
			check(t, s, positionAt(1), m)
		})
	}
}

// A file that was closed stays marked so until the first checkpoint, which takes
// the pos away again.
func TestCleanFlag(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1))
	for range 2 { // closing again what was only opened
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		o.BootID += "+"
		s = mustOpen(t, o)
	}
	checkpoint(t, s, positionAt(2))
	s.Abandon()
	o.BootID = "later"
	s, set, err := Open(o)
	if err != nil || set == nil || !errors.Is(set.Reason, ErrOtherBoot) {
		t.Fatalf("%+v, %v", set, err)
	}
	s.Abandon()
}

// The mark that a file may be trusted after a power loss is removed from the disk before the
// first unsynced write, and restored after the last.
func TestSyncs(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after bool // Sync of the store that leaves the file, and of the next
		close         bool
		want          []bool // are the next checkpoints synced, and closing
	}{
		{"fresh", false, false, false, []bool{true, false, false, true}},
		{"closed", false, false, true, []bool{true, false, false, true}},
		{"left open", false, false, false, []bool{false, false, false, true}},
		{"left open by one that syncs", true, false, false, []bool{true, false, false, true}},
		{"syncs", false, true, false, []bool{true, true, true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			if c.name != "fresh" {
				o.Sync = c.before
				s := mustOpen(t, o)
				checkpoint(t, s, positionAt(1))
				if !c.close {
					s.Abandon()
				} else if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			o.Sync = c.after
			s := mustOpen(t, o)
			var got []bool
			for i := range 3 {
				checkpoint(t, s, positionAt(uint64(i)+2))
				got = append(got, !s.db.NoSync)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got = append(got, !s.db.NoSync); !slices.Equal(got, c.want) {
				t.Errorf("synced: %v, want %v", got, c.want)
			}
		})
	}
}

// Three files are kept, the youngest; whatever else lies there stays.
func TestQuarantineKeepsThree(t *testing.T) {
	o := options(t)
	for i := range 5 {
		s, set, err := Open(o)
		if err != nil || (set == nil) != (i == 0) {
			t.Fatalf("%+v, %v", set, err)
		}
		s.Abandon()
		if err := os.WriteFile(o.Path, fmt.Appendf(nil, "damaged %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := o.Path + ".bad-1x"
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Abandon()
	got := map[string]string{}
	files, _ := filepath.Glob(o.Path + ".bad-*")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		got[strings.TrimPrefix(f, o.Path)] = string(b)
	}
	want := map[string]string{".bad-3": "damaged 2", ".bad-4": "damaged 3", ".bad-5": "damaged 4", ".bad-1x": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A file has one owner; those who only read do not disturb each other.
func TestLock(t *testing.T) {
	o := options(t)
	read := o
	read.ReadOnly = true
	if _, _, err := Open(read); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1), Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}})
	for _, o := range []Options{o, read} {
		if _, set, err := Open(o); !errors.Is(err, ErrInUse) || set != nil {
			t.Errorf("second open: %v, %v", set, err)
		}
	}
	check(t, s, positionAt(1), model{address("a"): {"head": "A"}})
	s.Abandon()

	first, second := mustOpen(t, read), mustOpen(t, read)
	defer first.Close()
	check(t, second, positionAt(1), model{address("a"): {"head": "A"}})
	if err := second.Checkpoint(positionAt(2), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("writing what is open for reading: %v", err)
	}
	if _, _, err := Open(o); !errors.Is(err, ErrInUse) {
		t.Errorf("open while another process reads: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// A wait for a lock ends with its context.
func TestLockEnds(t *testing.T) {
	o := options(t)
	defer mustOpen(t, o).Close()
	f, err := os.Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Lock(ctx, f, unix.LOCK_EX, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Reading never moves a file.
func TestReadOnlyDamaged(t *testing.T) {
	o := options(t)
	mustOpen(t, o).Abandon()
	if err := os.WriteFile(o.Path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.ReadOnly = true
	if _, set, err := Open(o); !errors.Is(err, ErrDamaged) || set != nil {
		t.Errorf("%v, %v", set, err)
	}
	if b, err := os.ReadFile(o.Path); string(b) != "damaged" {
		t.Errorf("%q, %v", b, err)
	}
}

// Who waits for a file that its holder quarantines gets the fresh one.
func TestLockFollowsTheName(t *testing.T) {
	o := options(t)
	mustOpen(t, o).Abandon()
	holder, err := openLocked(o)
	if err != nil {
		t.Fatal(err)
	}
	o.LockWait = 10 * time.Second
	opened := make(chan *Store)
	go func() {
		s, _, err := Open(o)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	for { // until it waits: a shared lock for a moment must not let it in
		if isWaitingOn(t, o.Path) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	moved, err := quarantine(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	holder.Close()
	s := <-opened
	defer s.Abandon()
	checkpoint(t, s, positionAt(1))
	old, err := os.Stat(moved)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(o.Path); err != nil || os.SameFile(old, now) {
		t.Errorf("the store writes the quarantined file: %v", err)
	}
}

// isWaitingOn reports whether this process has the file open twice.
func isWaitingOn(t *testing.T, path string) bool {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("SKIPPED: this system has no /proc, which shows who has a file open")
	}
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == path {
			n++
		}
	}
	return n >= 2
}

// After Close, and after Abandon, everything is an error and nothing a panic.
func TestClosed(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1), Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.Abandon()
	_, err := s.Load(address("a"))
	_, unlisted := s.List(events.DefaultTenant, "", 1)
	for name, err := range map[string]error{
		"load": err, "list": unlisted, "checkpoint": s.Checkpoint(positionAt(2), nil),
		"each": s.Each(func(events.Address, []compaction.Row) error { return nil }),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Position() != positionAt(1) {
		t.Error(s.Position())
	}
}

// The function's error ends Each and comes out as it is.
func TestEachStops(t *testing.T) {
	s := mustOpen(t, options(t))
	defer s.Abandon()
	checkpoint(t, s, positionAt(1),
		Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}},
		Change{Address: address("b"), Rows: []compaction.Row{row("head", "B")}})
	n := 0
	if err := s.Each(func(events.Address, []compaction.Row) error { n++; return unix.EDOM }); err != unix.EDOM || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

// A worker drops the members of a row that it does not know, so rows of another shape are another format.
func TestFormatOfRows(t *testing.T) {
	shapes := map[uint32]string{5: "958f5da3b2498681"}
	h := sha256.New()
	writeShape(h, map[reflect.Type]bool{}, reflect.TypeFor[compaction.Header](), reflect.TypeFor[measure.Entry]())
	if got := hex.EncodeToString(h.Sum(nil)[:8]); got != shapes[formatVersion] {
		t.Errorf("rows of format %d have the shape %s, not %q: raise formatVersion, and write the shape of the new format here", formatVersion, got, shapes[formatVersion])
	}
}

// writeShape writes types with the names, tags and types of their members.
func writeShape(w io.Writer, seen map[reflect.Type]bool, types ...reflect.Type) {
	for _, t := range types {
		fmt.Fprintln(w, t)
		if seen[t] {
			continue
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			writeShape(w, seen, t.Elem())
		case reflect.Map:
			writeShape(w, seen, t.Key(), t.Elem())
		case reflect.Struct:
			for f := range t.Fields() {
				fmt.Fprintln(w, f.Name, f.Tag)
				writeShape(w, seen, f.Type)
			}
		default:
			fmt.Fprintln(w, t.Kind())
		}
	}
}
