package kv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
)

// series is a list of mutations, identified by a number each.
type series struct {
	kinds []string
	each  int
}

func (s series) len() int              { return len(s.kinds) * s.each }
func (s series) kind(i int) string     { return s.kinds[i/s.each] }
func (s series) rand(i int) *rand.Rand { return rand.New(rand.NewPCG(uint64(i), 7)) }

var allSeries = map[string]series{
	"main": {[]string{"flip", "zero", "truncate"}, 300},
	"more": {[]string{"header", "branch", "meta", "stale", "stale tail", "swap", "noise", "old metas", "count", "separator", "cut root"}, 40},
	"open": {[]string{"flip", "zero", "truncate", "header", "branch", "cut root"}, 25},
	"raw":  {[]string{"flip", "zero", "truncate", "header"}, 15},
}

// P11: a damaged file is quarantined, or is whole at a checkpoint that was
// made. It never gives another ledger, and never ends the process. The same holds
// for one that is damaged while a store has it open. With bbolt alone, every panic
// and fault caught, neither is so: the test is not blind.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	makeBase(t, dir)
	for _, c := range []struct {
		name string
		must []string // outcomes without which the series shows nothing
	}{
		{"main", []string{"quarantined", "intact"}},
		{"more", []string{"quarantined", "intact"}},
		{"open", []string{"noticed", "intact"}},
		{"raw", []string{"undetected", "crashed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := runSeries(t, dir, c.name)
			figures.Print(t, "P11", "mutations", allSeries[c.name].len(), "kinds", len(allSeries[c.name].kinds), "quarantined", n["quarantined"],
				"noticed", n["noticed"], "intact", n["intact"], "undetected", n["undetected"], "crashed", n["crashed"])
			for _, word := range c.must {
				if n[word] == 0 {
					t.Errorf("none is %s", word)
				}
			}
		})
	}
}

// runSeries lets children work through a series. When one crashes, the next goes on
// behind the mutation that killed it.
func runSeries(t *testing.T, dir, name string) map[string]int {
	t.Helper()
	count := map[string]int{}
	byKind := map[string]int{}
	all := allSeries[name]
	for next := 0; next < all.len(); {
		cmd, lines := startChild(t, "mutate", dir, name, next)
		at := next
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			if word == "try" {
				at, _ = strconv.Atoi(rest)
				continue
			}
			count[word]++
			byKind[all.kind(at)+" "+word]++
			next = at + 1
			if name != "raw" && (word == "undetected" || word == "error") {
				t.Errorf("%s %d: %s", all.kind(at), at, lines.Text())
			}
		}
		if err := cmd.Wait(); err != nil && next <= at {
			count["crashed"]++
			byKind[all.kind(at)+" crashed"]++
			next = at + 1
			if name == "open" { // may be; see doc.go
				checkAfterCrash(t, dir, name)
			} else if name != "raw" {
				t.Errorf("%s %d: the process crashed: %v\n%s", all.kind(at), at, err, cmd.Stderr.(*tail).b)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(byKind)) {
		t.Log(k, byKind[k])
	}
	return count
}

// checkAfterCrash opens the damaged file on which a process crashed.
func checkAfterCrash(t *testing.T, dir, name string) {
	t.Helper()
	s, set, err := Open(damageOptions(filepath.Join(dir, name)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	t.Logf("after a crash: %+v", set)
	if set == nil {
		t.Error("the file that killed a process is trusted")
	}
}

// makeBase writes the file to be damaged, an older version of it, and the hash of
// every state it ever had.
func makeBase(t *testing.T, dir string) {
	t.Helper()
	o := damageOptions(dir)
	s := mustOpen(t, o)
	s.head.clean = false // no syncs, for speed
	r := rand.New(rand.NewPCG(1, 1))
	m := model{}
	states := map[uint64]string{0: m.hash(Position{})}
	for cursor := uint64(1); cursor <= 60; cursor++ {
		changes := drawChanges(r, 130)
		if cursor == 55 { // enough to start from
			for i := range 130 {
				changes = append(changes, Change{Address: address(fmt.Sprint("s-", i)), Rows: []compaction.Row{
					{Name: "head", Data: drawData(r)}, {Name: "c0", Data: drawData(r)},
				}})
			}
		}
		checkpoint(t, s, positionAt(cursor), changes...)
		m.apply(changes)
		states[cursor] = m.hash(positionAt(cursor))
		if cursor == 57 {
			copyFile(t, o.Path, filepath.Join(dir, "old"))
		}
	}
	check(t, s, positionAt(60), m)
	s.Abandon()
	copyFile(t, o.Path, filepath.Join(dir, "base"))
	b, err := json.Marshal(states)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "states"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions, %d rows, %d pages", len(m), m.rows(), fileBytes(t, s)/pageSize)
}

func damageOptions(dir string) Options {
	return Options{Path: filepath.Join(dir, "p.db"), Partition: 3, Partitions: 8, BootID: "boot"}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// trial is the input of a child.
type trial struct {
	o      Options
	base   []byte
	old    []byte
	states map[uint64]string
	whole  model
}

// mutateChild works through a series from a number on and prints what becomes of
// each: try 7, intact.
func mutateChild(args []string) error {
	dir, name := args[0], args[1]
	from, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	t := &trial{o: damageOptions(filepath.Join(dir, name))}
	if err := os.MkdirAll(filepath.Dir(t.o.Path), 0o700); err != nil {
		return err
	}
	if t.base, err = os.ReadFile(filepath.Join(dir, "base")); err != nil {
		return err
	}
	if t.old, err = os.ReadFile(filepath.Join(dir, "old")); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "states"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &t.states); err != nil {
		return err
	}
	if t.whole, err = t.wholeState(); err != nil {
		return err
	}
	all := allSeries[name]
	for i := from; i < all.len(); i++ {
		fmt.Println("try", i)
		mutate := func() []byte { return mutations[all.kind(i)](all.rand(i), bytes.Clone(t.base), t.old) }
		var word string
		switch name {
		case "open":
			word, err = t.open(mutate)
		case "raw":
			word, err = t.raw(mutate)
		default:
			word, err = t.closed(name == "more" || i%4 == 0, mutate)
		}
		if err != nil {
			fmt.Println("error", err)
			continue
		}
		fmt.Println(word)
	}
	return nil
}

func (t *trial) wholeState() (model, error) {
	if err := t.write(t.base); err != nil {
		return nil, err
	}
	s, _, err := Open(t.o)
	if err != nil {
		return nil, err
	}
	defer s.Abandon()
	return dump(s)
}

// write puts a file in place, alone.
func (t *trial) write(b []byte) error {
	old, err := filepath.Glob(t.o.Path + "*")
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return os.WriteFile(t.o.Path, b, 0o600)
}

// closed damages a file that no process has open, and opens it.
func (t *trial) closed(thorough bool, mutate func() []byte) (string, error) {
	if err := t.write(mutate()); err != nil {
		return "", err
	}
	return t.reopen(thorough)
}

// reopen opens the file as it is there and checks the result. Then it writes
// to it and reads it all again, when it is thorough.
func (t *trial) reopen(thorough bool) (string, error) {
	s, set, err := Open(t.o)
	if err != nil {
		return "", err
	}
	defer func() { s.Abandon() }()
	s.head.clean = false // no syncs, for speed
	word := "intact"
	if set != nil {
		word = "quarantined"
		if !errors.Is(set.Reason, ErrDamaged) {
			return "", set.Reason
		}
	}
	m, err := dump(s)
	if err != nil {
		return "", err
	}
	if t.states[s.Position().Cursor] != m.hash(s.Position()) || set != nil && len(m) > 0 {
		return fmt.Sprintf("undetected at %d", s.Position().Cursor), nil
	}
	if !thorough {
		return word, nil
	}
	r := rand.New(rand.NewPCG(9, 9))
	for cursor := uint64(1001); cursor < 1004; cursor++ {
		changes := drawChanges(r, 10)
		if err := s.Checkpoint(positionAt(cursor), changes); err != nil {
			return "", err
		}
		m.apply(changes)
	}
	want := m.hash(positionAt(1003))
	s.Abandon()
	if s, set, err = Open(t.o); err != nil {
		return "", err
	}
	if set != nil {
		return "", fmt.Errorf("after checkpoints: %w", set.Reason)
	}
	if m, err = dump(s); err != nil {
		return "", err
	}
	if m.hash(s.Position()) != want {
		return "undetected after checkpoints", nil
	}
	return word, nil
}

// open damages a file under an open store.
func (t *trial) open(mutate func() []byte) (string, error) {
	if err := t.write(t.base); err != nil {
		return "", err
	}
	s, set, err := Open(t.o)
	if err != nil || set != nil {
		return "", fmt.Errorf("the base: %v, %w", set, err)
	}
	defer s.Abandon()
	if err := overwrite(t.o.Path, mutate()); err != nil {
		return "", err
	}
	word := "intact"
	for a, want := range t.whole {
		switch rows, err := s.Load(a); {
		case errors.Is(err, ErrDamaged):
			word = "noticed"
			t.goOn(s)
		case err != nil:
			return "", err
		case !maps.Equal(asMap(rows), want):
			return "undetected load of " + a.String(), nil
		}
	}
	switch m, err := dump(s); {
	case errors.Is(err, ErrDamaged):
		word = "noticed"
		t.goOn(s)
	case err != nil:
		return "", err
	case m.hash(s.Position()) != t.states[s.Position().Cursor]:
		return "undetected dump", nil
	}
	// Who goes on in spite of it does no harm either.
	for range 2 {
		if err := s.Checkpoint(positionAt(61), nil); err != nil && !errors.Is(err, ErrDamaged) {
			return "", err
		}
		t.goOn(s)
		t.states[61] = t.whole.hash(positionAt(61))
	}
	s.Abandon()
	after, err := t.reopen(true)
	if err != nil || strings.HasPrefix(after, "undetected") {
		return after, err
	}
	return word, nil
}

// goOn lets a store be used that has found damage, unless bbolt panicked.
func (t *trial) goOn(s *Store) {
	if !s.stuck {
		s.broken = nil
	}
}

// overwrite changes a file in place.
func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(b)))
}

// raw is what the damaged file would give without this package's checks.
func (t *trial) raw(mutate func() []byte) (string, error) {
	if err := t.write(mutate()); err != nil {
		return "", err
	}
	m := model{}
	var head *head
	err := guard(func() error {
		db, err := bolt.Open(t.o.Path, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			data := tx.Bucket(bucketMeta).Get(keyHead)
			if head, err = decodeHead(data[:len(data)-sumBytes]); err != nil {
				return err
			}
			return tx.Bucket(bucketRows).ForEach(func(k, v []byte) error {
				address, name, _ := strings.Cut(string(k), "\x00")
				tenant, session, _ := strings.Cut(address, ".")
				a := events.Address{Tenant: tenant, Session: session}
				m.apply([]Change{{Address: a, Rows: []compaction.Row{{Name: name, Data: bytes.Clone(v[:len(v)-sumBytes])}}}})
				return nil
			})
		})
	})
	if err != nil {
		return "noticed", nil //nolint:nilerr // the error is what was to be seen
	}
	if m.hash(head.position) != t.states[head.position.Cursor] {
		return "undetected", nil
	}
	return "intact", nil
}

// The reader of plain bytes takes whatever it gets without a panic. This runs in
// this process: nothing is mapped.
func TestVerifyNoise(t *testing.T) {
	dir := t.TempDir()
	makeBase(t, dir)
	base, err := os.ReadFile(filepath.Join(dir, "base"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(dir, "old"))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 0, len(base))
	passed := 0
	kinds := slices.Sorted(maps.Keys(mutations))
	for i := range 300 {
		r := rand.New(rand.NewPCG(uint64(i), 8))
		b = append(b[:0], base...)
		damaged := b
		for range 1 + r.IntN(4) {
			if len(damaged) < len(old) || len(damaged)%pageSize != 0 {
				break
			}
			damaged = mutations[kinds[r.IntN(len(kinds))]](r, damaged, old)
		}
		if _, err := verify(bytes.NewReader(damaged), int64(len(damaged))); err == nil {
			passed++
		}
	}
	t.Logf("%d of 300 passed", passed)
}
