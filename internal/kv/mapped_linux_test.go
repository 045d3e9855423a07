package kv

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Of a large file only a few pages are in memory, whatever was done with it (P14).
func TestMappedPages(t *testing.T) {
	const sessions, size, most = 3000, 8 << 10, 6 << 10
	o := options(t)
	s := mustOpen(t, o)
	text := strings.Repeat("x", size)
	want := func(after string) {
		t.Helper()
		if kb := mappedKB(t, o.Path); kb > most {
			t.Errorf("%d KB of the file are in memory after %s; want at most %d", kb, after, most)
		}
	}
	var changes []Change
	for i := range sessions {
		changes = append(changes, Change{Address: address(fmt.Sprint(i)), Rows: []compaction.Row{row("head", text)}})
	}
	checkpoint(t, s, positionAt(1), changes...)
	checkpoint(t, s, positionAt(2), changes...)
	want("a checkpoint")
	for i := range sessions {
		if _, err := s.Load(address(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if i%500 == 0 {
			want(fmt.Sprintf("%d loads", i))
		}
	}
	s.Release()
	if kb := mappedKB(t, o.Path); kb > 0 {
		t.Errorf("%d KB of the file are in memory after their release", kb)
	}
	if err := s.Each(func(events.Address, []compaction.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want("a look at all ledgers")
	if names, err := s.List(events.DefaultTenant, "", sessions); err != nil || len(names) != sessions {
		t.Fatalf("%d sessions, %v", len(names), err)
	}
	want("a list of all sessions")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	want("opening")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// mappedKB is how much of a mapped file is in the memory of this process.
func mappedKB(t *testing.T, path string) (kb int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(smaps), path+"\n")
	if !found {
		t.Fatalf("%s is not mapped", path)
	}
	_, rest, _ = strings.Cut(rest, "\nRss:")
	if _, err := fmt.Sscanf(rest, "%d kB", &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
