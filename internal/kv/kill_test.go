package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"compactd/internal/compaction"
)

// killChanges is the checkpoint with a number, the same in both processes.
func killChanges(cursor uint64) []Change { return drawChanges(rand.New(rand.NewPCG(cursor, 3)), 200) }

// writeChild makes checkpoints until it is killed.
func writeChild(args []string) error {
	s, set, err := Open(Options{Path: args[0], Partitions: 1, Sync: args[1] == "true"})
	if err != nil || set != nil {
		return fmt.Errorf("%+v, %w", set, err)
	}
	for cursor := s.Position().Cursor + 1; ; cursor++ {
		if err := s.Checkpoint(positionAt(cursor), killChanges(cursor)); err != nil {
			return err
		}
		fmt.Println("ack", cursor)
	}
}

// P1: after kill -9 at any moment the file holds every checkpoint that was
// acknowledged, at most one more, and nothing by halves.
func TestKill(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprint("sync=", sync), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.db")
			m, at := model{}, uint64(0)
			for range 8 {
				cmd, lines := startChild(t, "write", path, sync)
				acked := at
				kill := time.AfterFunc(time.Hour, func() { cmd.Process.Kill() })
				for lines.Scan() {
					n, ok := strings.CutPrefix(lines.Text(), "ack ")
					if !ok {
						t.Fatal(lines.Text())
					}
					if acked == at { // alive: some time from now
						kill.Reset(time.Duration(rand.IntN(60)) * time.Millisecond)
					}
					acked, _ = strconv.ParseUint(n, 10, 64)
				}
				kill.Stop()
				cmd.Wait()

				s := mustOpen(t, Options{Path: path, Partitions: 1, Sync: sync})
				now := s.Position().Cursor
				if now < acked || now > acked+1 {
					t.Fatalf("file at %d, acknowledged %d", now, acked)
				}
				for at < now {
					at++
					m.apply(killChanges(at))
				}
				check(t, s, positionAt(at), m)
				s.Abandon()
			}
			t.Logf("%d checkpoints, 8 kills", at)
		})
	}
}

// fullChild fills a file up to a limit, looks at what is left, and goes on when
// the limit is gone.
func fullChild(args []string) error {
	o := Options{Path: args[0], Partitions: 1, Sync: args[1] == "true"}
	s, _, err := Open(o)
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 300_000, Max: 1 << 40}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	m, at := model{}, uint64(0)
	failed := 0
	for failed < 3 {
		changes := []Change{{Address: address(fmt.Sprint("s-", at)), Rows: []compaction.Row{{Name: "head", Data: make([]byte, 5000)}}}}
		err := s.Checkpoint(positionAt(at+1), changes)
		if err == nil {
			at++
			m.apply(changes)
			continue
		}
		if w, ok := errors.AsType[*WriteError](err); !ok || !w.Full || !errors.Is(err, ErrFull) {
			return fmt.Errorf("not typed: %w", err)
		}
		failed++
		fmt.Println("full", err)
		if got, err := dump(s); err != nil || got.hash(s.Position()) != m.hash(positionAt(at)) {
			return fmt.Errorf("another state after %d: %w", at, err)
		}
	}
	if at < 10 {
		return fmt.Errorf("full after %d checkpoints", at)
	}
	// A write that takes no more room still succeeds.
	drop := []Change{{Address: address("s-0"), Drop: true}}
	if err := s.Checkpoint(positionAt(at+1), drop); err == nil {
		at++
		m.apply(drop)
		fmt.Println("dropped")
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	more := killChanges(1)
	if err := s.Checkpoint(positionAt(at+1), more); err != nil {
		return err
	}
	m.apply(more)
	s.Abandon()
	s, set, err := Open(o)
	if err != nil || set != nil {
		return fmt.Errorf("%+v, %w", set, err)
	}
	if got, err := dump(s); err != nil || got.hash(s.Position()) != m.hash(positionAt(at+1)) {
		return fmt.Errorf("another state at the end: %w", err)
	}
	fmt.Println("done")
	return s.Close()
}

// P12: a full disk is reported with a type, costs nothing that was written, and
// passes.
func TestFull(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprint("sync=", sync), func(t *testing.T) {
			cmd, lines := startChild(t, "full", filepath.Join(t.TempDir(), "p.db"), sync)
			var printed []string
			for lines.Scan() {
				printed = append(printed, lines.Text())
			}
			if err := cmd.Wait(); err != nil || len(printed) == 0 || printed[len(printed)-1] != "done" {
				t.Fatalf("%v\n%s\n%s", err, strings.Join(printed, "\n"), cmd.Stderr.(*tail).b)
			}
			t.Log(strings.Join(printed, "\n"))
		})
	}
}
