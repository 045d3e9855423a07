package kv

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// model is what a store should hold: address, row name, data.
type model map[events.Address]map[string]string

func (m model) apply(changes []Change) {
	for _, c := range changes {
		if c.Replace || c.Drop {
			delete(m, c.Address)
		}
		for _, r := range c.Rows {
			if m[c.Address] == nil {
				m[c.Address] = map[string]string{}
			}
			m[c.Address][r.Name] = string(r.Data)
		}
	}
}

func (m model) rows() (n uint64) {
	for _, rows := range m {
		n += uint64(len(rows))
	}
	return n
}

// hash distinguishes states without storing them.
func (m model) hash(pos Position) string {
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", pos)
	for _, a := range slices.SortedFunc(maps.Keys(m), byAddress) {
		for _, name := range slices.Sorted(maps.Keys(m[a])) {
			h.Write([]byte(a.String() + " " + name + " "))
			sum := sha256.Sum256([]byte(m[a][name]))
			h.Write(sum[:])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func byAddress(a, b events.Address) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) }

// wantListed compares the lists of all tenants with what a store holds.
func wantListed(s *Store, m model) error {
	want := map[string][]string{}
	for a := range m {
		want[a.Tenant] = append(want[a.Tenant], a.Session)
	}
	for tenant, sessions := range want {
		slices.Sort(sessions)
		got, err := s.List(tenant, "", len(sessions)+1)
		if err != nil {
			return err
		}
		if !slices.Equal(got, sessions) {
			return fmt.Errorf("%s has the sessions %q, listed are %q", tenant, sessions, got)
		}
	}
	return nil
}

// dump reads a store with Each, and every session again with Load.
func dump(s *Store) (model, error) {
	m := model{}
	var last events.Address
	err := s.Each(func(a events.Address, rows []compaction.Row) error {
		if last != (events.Address{}) && byAddress(last, a) >= 0 {
			return fmt.Errorf("%s after %s", a, last)
		}
		last = a
		m[a] = asMap(rows)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for a, want := range m {
		rows, err := s.Load(a)
		if err != nil {
			return nil, err
		}
		if !slices.IsSortedFunc(rows, func(a, b compaction.Row) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) }) {
			return nil, fmt.Errorf("rows of %s are out of order", a)
		}
		if !maps.Equal(asMap(rows), want) {
			return nil, fmt.Errorf("Load and Each differ on %s", a)
		}
	}
	return m, nil
}

func asMap(rows []compaction.Row) map[string]string {
	m := map[string]string{}
	for _, r := range rows {
		m[r.Name] = string(r.Data)
	}
	return m
}

// tb is what testing.T and rapid.T share.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// check wants a store to hold exactly m at pos.
func check(t tb, s *Store, pos Position, m model) {
	t.Helper()
	got, err := dump(s)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(m, got, maps.Equal) { // cmp alone is slow
		t.Fatal(cmp.Diff(m, got))
	}
	if err := wantListed(s, m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pos, s.Position()); diff != "" {
		t.Fatal(diff)
	}
	if len(s.index.sessions) != len(m) || s.head.rows != m.rows() {
		t.Fatalf("%d sessions with %d rows; want %d with %d rows", len(s.index.sessions), s.head.rows, len(m), m.rows())
	}
}

// fileBytes is the size of a store's file.
func fileBytes(t testing.TB, s *Store) int64 {
	t.Helper()
	info, err := os.Stat(s.opt.Path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// mustOpen opens a file that has to be trusted.
func mustOpen(t tb, o Options) *Store {
	t.Helper()
	s, set, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if set != nil {
		t.Fatalf("quarantined: %v", set.Reason)
	}
	return s
}

func positionAt(cursor uint64) Position {
	return Position{
		Cursor: cursor, Chain: cursor * 0x9E3779B97F4A7C15, LastID: fmt.Sprint("event-", cursor),
		LastTime: int64(cursor) * 1000, LogCreated: -1, Config: "cfg",
	}
}

// drawChanges makes a checkpoint out of a seed: some ledgers at random, or, now
// and then, a great many, so that pages split, merge and go.
func drawChanges(r *rand.Rand, sessions int) []Change {
	n := 1 + r.IntN(8)
	if r.IntN(6) == 0 {
		n = sessions
	}
	drops := r.IntN(12) // of 12; many at times, so that the tree shrinks
	changes := make([]Change, 0, n)
	for range n {
		c := Change{Address: events.Address{Tenant: []string{"a", "default"}[r.IntN(2)], Session: fmt.Sprint("s-", r.IntN(sessions))}}
		switch {
		case r.IntN(12) < drops && r.IntN(3) > 0:
			c.Drop = true
		default:
			c.Replace = r.IntN(4) == 0
			for range r.IntN(4) {
				c.Rows = append(c.Rows, compaction.Row{Name: fmt.Sprint("r", r.IntN(6)), Data: drawData(r)})
			}
		}
		changes = append(changes, c)
	}
	return changes
}

func drawData(r *rand.Rand) []byte {
	n := r.IntN(400)
	switch r.IntN(40) {
	case 0, 1, 2:
		n = r.IntN(3000)
	case 3:
		n = r.IntN(12) * 1000 // several pages
	}
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// Whatever checkpoints, closings and crashes come in whatever order, a store holds
// what a map would, and the file always passes its own check. A copy made at any
// moment between two checkpoints is what kill -9 would leave.
func TestStoreIsAMap(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		o := Options{Path: filepath.Join(dir, fmt.Sprint(run), "p.db"), Partition: 3, Partitions: 8, Sync: rapid.IntRange(0, 9).Draw(t, "sync") == 0}
		sessions := rapid.SampledFrom([]int{3, 40, 250}).Draw(t, "sessions")
		s := mustOpen(t, o)
		defer func() { s.Abandon() }()
		m, pos := model{}, Position{}
		checkpoint := func(t *rapid.T) {
			changes := drawChanges(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), sessions)
			pos = positionAt(pos.Cursor + 1)
			if err := s.Checkpoint(pos, changes); err != nil {
				t.Fatal(err)
			}
			m.apply(changes)
			verifyFile(t, o.Path, m)
		}
		t.Repeat(map[string]func(*rapid.T){
			"checkpoint":  checkpoint,
			"checkpoint2": checkpoint,
			"close": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, o)
				check(t, s, pos, m)
			},
			"crash": func(t *rapid.T) {
				s.Abandon()
				s = mustOpen(t, o)
				check(t, s, pos, m)
			},
			"copy": func(t *rapid.T) {
				c := o
				c.Path = filepath.Join(dir, "copy.db")
				b, err := os.ReadFile(o.Path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(c.Path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				s := mustOpen(t, c)
				check(t, s, pos, m)
				s.Abandon()
			},
			"read": func(t *rapid.T) { check(t, s, pos, m) },
		})
	})
}

// verifyFile runs the check that Open makes on a file that is in use.
func verifyFile(t tb, path string, m model) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify(f, info.Size())
	if err != nil {
		t.Fatalf("a sound file does not pass: %v", err)
	}
	if len(v.index.sessions) != len(m) {
		t.Fatalf("%d sessions, want %d", len(v.index.sessions), len(m))
	}
}

// A tree of three levels that grows, is stirred, and shrinks to a tenth: at each
// step the file passes its check. Pages must begin with the very key that the
// branch above has for them, which bbolt keeps to without promising it.
func TestLargeTree(t *testing.T) {
	o := Options{Path: filepath.Join(t.TempDir(), "p.db"), Partition: 3, Partitions: 8}
	s := mustOpen(t, o)
	defer func() { s.Abandon() }()
	r := rand.New(rand.NewPCG(4, 4))
	m := model{}
	for cursor := uint64(1); cursor <= 16; cursor++ {
		var changes []Change
		for range 12 {
			changes = append(changes, drawChanges(r, 4000)...)
		}
		if cursor%8 == 0 {
			all := slices.SortedFunc(maps.Keys(m), byAddress)
			for _, a := range all[len(all)/20 : len(all)*19/20] {
				changes = append(changes, Change{Address: a, Drop: true})
			}
		}
		if err := s.Checkpoint(positionAt(cursor), changes); err != nil {
			t.Fatal(err)
		}
		m.apply(changes)
		verifyFile(t, o.Path, m)
	}
	s.Abandon()
	s = mustOpen(t, o)
	check(t, s, positionAt(16), m)
}
