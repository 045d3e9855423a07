package broker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/events"
)

// The streams are as the design has them, and the partitions of an existing log
// stay, whatever is asked for.
func TestEnsure(t *testing.T) {
	w := newEnv(t)
	log, _ := w.js.Stream(t.Context(), LogStream)
	out, _ := w.js.Stream(t.Context(), OutcomesStream)
	lc, oc := log.CachedInfo().Config, out.CachedInfo().Config
	if lc.MaxAge != DefaultMaxAge || oc.MaxAge != DefaultMaxAge || lc.Duplicates != DefaultDuplicates {
		t.Errorf("ages are %s, %s, duplicates %s", lc.MaxAge, oc.MaxAge, lc.Duplicates)
	}
	if !lc.AllowDirect || oc.AllowDirect || !oc.AllowAtomicPublish || lc.MaxBytes != testBytes {
		t.Errorf("settings are %+v, %+v", lc, oc)
	}
	if len(lc.Subjects) != len(events.LogKinds) {
		t.Errorf("subjects are %v", lc.Subjects)
	}
	s, err := Ensure(t.Context(), w.js, Topology{Partitions: 64})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.streams, s); diff != "" {
		t.Errorf("asked for again: %s", diff)
	}
	if s.Partitions != 4 {
		t.Errorf("partitions are %d", s.Partitions)
	}
}

// Age, bounds and missing subjects change in place; extra subjects stay; what is
// not asked for stays.
func TestEnsureUpdates(t *testing.T) {
	w := newEnv(t)
	log, _ := w.js.Stream(t.Context(), LogStream)
	c := log.CachedInfo().Config
	c.Subjects = []string{"session.turn.*.*", "session.*.acme.*.x"} // an older version, and an operator's wish
	if _, err := w.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s, err := Ensure(t.Context(), w.js, Topology{MaxAge: time.Minute, MaxBytesLog: testBytes * 2})
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxAge != time.Minute || s.Log.MaxBytes != testBytes*2 || s.Outcomes.MaxBytes != testBytes {
		t.Errorf("streams are %+v", s)
	}
	log, _ = w.js.Stream(t.Context(), LogStream)
	c = log.CachedInfo().Config
	for _, subject := range append(logSubjects(), "session.*.acme.*.x") {
		if !slices.Contains(c.Subjects, subject) {
			t.Errorf("%s is not among %v", subject, c.Subjects)
		}
	}
	if c.Duplicates != time.Minute {
		t.Errorf("duplicates window is %s", c.Duplicates)
	}
	s, err = Ensure(t.Context(), w.js, Topology{})
	if err != nil || s.MaxAge != time.Minute || s.Log.MaxBytes != testBytes*2 {
		t.Errorf("asked for nothing: %+v, %v", s, err)
	}
}

// Streams that cannot serve are refused with every reason at once.
func TestEnsureMismatch(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	nc, err := Connect(t.Context(), Options{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js := newJS(t, nc)
	for _, c := range []jetstream.StreamConfig{
		{
			Name: LogStream, Subjects: []string{"session.*.*.*"}, Retention: jetstream.InterestPolicy, Storage: jetstream.MemoryStorage,
			MaxMsgsPerSubject: 7, AllowRollup: true, DenyDelete: true,
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: events.InputPattern, Destination: "log.{{partition(8,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"},
		},
		{Name: OutcomesStream, Subjects: []string{"out.>"}, Discard: jetstream.DiscardOld, AllowDirect: true},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	_, err = Ensure(t.Context(), js, Topology{})
	bad, ok := errors.AsType[*TopologyError](err)
	if !ok {
		t.Fatal(err)
	}
	var got []string
	for _, m := range bad.Mismatches {
		got = append(got, m.Stream+" "+m.Field)
		if !strings.Contains(err.Error(), m.Stream+": "+m.Field+" is "+m.Have) {
			t.Errorf("text lacks %+v: %v", m, err)
		}
	}
	want := []string{
		"SESSIONS retention", "SESSIONS storage", "SESSIONS discard", "SESSIONS max messages per subject", "SESSIONS rollup",
		"SESSIONS deny delete", "SESSIONS direct get", "SESSIONS subject transform",
		"SESSIONS subject", "SESSIONS subject", "SESSIONS subject", "SESSIONS subject", // one for each kind of outcome
		"OUTCOMES discard", "OUTCOMES direct get", "OUTCOMES atomic publish", "OUTCOMES republish",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What the server cannot reserve is refused with a hint; a store limit far above
// the disk is none: the server sums up MaxBytes and never looks at the disk.
func TestReservation(t *testing.T) {
	for limit, fits := range map[int64]bool{0: true, 30 << 30: false} {
		srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxStore: limit})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := Connect(t.Context(), Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Ensure(t.Context(), newJS(t, nc), Topology{MaxBytesLog: 20 << 30, MaxBytesOutcomes: 20 << 30})
		if fits != (err == nil) {
			t.Errorf("store limit %d: %v", limit, err)
		}
		if !fits && (!hasCode(err, codeStorageExceeded) || !strings.Contains(err.Error(), "OUTCOMES")) {
			t.Errorf("error is %v", err)
		}
		nc.Close()
		srv.Stop()
	}
}

// Workers that start together agree on one topology.
func TestEnsureRace(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	got := make(chan int, 4)
	for p := range cap(got) {
		nc, err := Connect(t.Context(), Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js := newJS(t, nc)
		go func() {
			s, err := Ensure(t.Context(), js, Topology{Partitions: p + 1, CreateBytes: testBytes})
			if err != nil {
				t.Error(err)
				got <- 0
				return
			}
			got <- s.Partitions
		}()
	}
	first := <-got
	for range cap(got) - 1 {
		if p := <-got; p != first {
			t.Errorf("one worker has %d partitions, another %d", first, p)
		}
	}
}

// Every invalid field is in the one error.
func TestTopologyInvalid(t *testing.T) {
	w := newEnv(t)
	_, err := Ensure(t.Context(), w.js, Topology{Partitions: -1, MaxAge: 1, MaxBytesLog: -2, MaxBytesOutcomes: -2, CreateBytes: -2, Replicas: 9, Duplicates: -1})
	if err == nil || strings.Count(err.Error(), "\n") != 6 {
		t.Errorf("error is %v", err)
	}
}

// Two ages are a mismatch that asking for one of them mends.
func TestEnsureAges(t *testing.T) {
	w := newEnv(t)
	out, _ := w.js.Stream(t.Context(), OutcomesStream)
	c := out.CachedInfo().Config
	c.MaxAge = time.Hour
	if _, err := w.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err := Ensure(t.Context(), w.js, Topology{})
	bad, ok := errors.AsType[*TopologyError](err)
	if !ok || len(bad.Mismatches) != 1 || bad.Mismatches[0].Field != "max age" {
		t.Errorf("two ages: %v", err)
	}
	if s, err := Ensure(t.Context(), w.js, Topology{MaxAge: time.Hour}); err != nil || s.MaxAge != time.Hour {
		t.Errorf("one asked for: %+v, %v", s, err)
	}
}
