package topology_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// A bucket whose keys would not end, or that is none of ours, ends the start.
func TestEnsureRefusesBuckets(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js := brokertest.NewJS(t, nc)
	for _, name := range []string{topology.LeasesBucket, topology.MembersBucket} {
		if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = topology.Ensure(t.Context(), js, topology.Config{Partitions: 1, CreateBytes: brokertest.CreateBytes})
	bad, ok := errors.AsType[*topology.MismatchError](err)
	if !ok {
		t.Fatalf("ensured with %v", err)
	}
	want := []topology.Mismatch{
		{"KV_LEASES", "message TTL", "false", "true"},
		{"KV_LEASES", "delete markers", "false", "true"},
		{"KV_MEMBERS", "message TTL", "false", "true"},
		{"KV_MEMBERS", "delete markers", "false", "true"},
	}
	if diff := cmp.Diff(want, bad.Mismatches); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
}

// The streams are as the design has them, and the partitions of an existing log
// stay, whatever is requested.
func TestEnsure(t *testing.T) {
	w := brokertest.New(t)
	log, _ := w.JS.Stream(t.Context(), topology.LogStream)
	out, _ := w.JS.Stream(t.Context(), topology.OutcomesStream)
	lc, oc := log.CachedInfo().Config, out.CachedInfo().Config
	if lc.MaxAge != topology.DefaultMaxAge || oc.MaxAge != topology.DefaultMaxAge || lc.Duplicates != topology.DefaultDuplicates {
		t.Errorf("ages are %s, %s, duplicates %s", lc.MaxAge, oc.MaxAge, lc.Duplicates)
	}
	if !lc.AllowDirect || oc.AllowDirect || !oc.AllowAtomicPublish || lc.MaxBytes != brokertest.CreateBytes {
		t.Errorf("settings are %+v, %+v", lc, oc)
	}
	if len(lc.Subjects) != len(events.LogKinds) {
		t.Errorf("subjects are %v", lc.Subjects)
	}
	s, err := topology.Ensure(t.Context(), w.JS, topology.Config{Partitions: 64})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.Streams, s); diff != "" {
		t.Errorf("requested again: %s", diff)
	}
	if s.Partitions.Count() != 4 {
		t.Errorf("partitions are %d", s.Partitions.Count())
	}
}

// Age, bounds and missing subjects change in place; extra subjects stay; what is
// not requested stays.
func TestEnsureUpdates(t *testing.T) {
	w := brokertest.New(t)
	log, _ := w.JS.Stream(t.Context(), topology.LogStream)
	c := log.CachedInfo().Config
	c.Subjects = []string{"session.turn.*.*", "session.*.acme.*.x"} // an older version, and an operator's wish
	if _, err := w.JS.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s, err := topology.Ensure(t.Context(), w.JS, topology.Config{MaxAge: time.Minute, MaxBytesLog: brokertest.CreateBytes * 2})
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxAge != time.Minute || s.Log.MaxBytes != brokertest.CreateBytes*2 || s.Outcomes.MaxBytes != brokertest.CreateBytes {
		t.Errorf("streams are %+v", s)
	}
	log, _ = w.JS.Stream(t.Context(), topology.LogStream)
	c = log.CachedInfo().Config
	want := []string{"session.*.acme.*.x"}
	for _, k := range events.LogKinds {
		want = append(want, events.InputFilter(k))
	}
	for _, subject := range want {
		if !slices.Contains(c.Subjects, subject) {
			t.Errorf("%s is not among %v", subject, c.Subjects)
		}
	}
	if c.Duplicates != time.Minute {
		t.Errorf("duplicates window is %s", c.Duplicates)
	}
	s, err = topology.Ensure(t.Context(), w.JS, topology.Config{})
	if err != nil || s.MaxAge != time.Minute || s.Log.MaxBytes != brokertest.CreateBytes*2 {
		t.Errorf("requested nothing: %+v, %v", s, err)
	}
}

// The bucket of prefixes drops its oldest keys instead of growing, also where it was made without a bound.
func TestPrefixesAreBounded(t *testing.T) {
	w := brokertest.New(t)
	name := topology.StreamOf(topology.PrefixesBucket)
	for range 2 {
		s, err := w.JS.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		if c.MaxMsgs <= 0 || c.Discard != jetstream.DiscardOld {
			t.Errorf("the bucket holds %d keys, and then %s", c.MaxMsgs, c.Discard)
		}
		c.MaxMsgs, c.Discard = -1, jetstream.DiscardNew
		if _, err := w.JS.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := topology.Ensure(t.Context(), w.JS, topology.Config{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Streams that cannot serve are refused with every reason at once.
func TestEnsureMismatch(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js := brokertest.NewJS(t, nc)
	for _, c := range []jetstream.StreamConfig{
		{
			Name: topology.LogStream, Subjects: []string{"session.*.*.*"}, Retention: jetstream.InterestPolicy, Storage: jetstream.MemoryStorage,
			MaxMsgsPerSubject: 7, AllowRollup: true, DenyDelete: true,
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: events.InputPattern, Destination: "log.{{partition(8,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"},
		},
		{Name: topology.OutcomesStream, Subjects: []string{"out.>"}, Discard: jetstream.DiscardOld, AllowDirect: true},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	_, err = topology.Ensure(t.Context(), js, topology.Config{})
	bad, ok := errors.AsType[*topology.MismatchError](err)
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

// A size that the server cannot reserve is refused with a hint; a store limit far above
// the disk is none: the server sums up MaxBytes and never looks at the disk.
func TestReservation(t *testing.T) {
	for limit, fits := range map[int64]bool{0: true, 30 << 30: false} {
		srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxStore: limit})
		if err != nil {
			t.Fatal(err)
		}
		nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		_, err = topology.Ensure(t.Context(), brokertest.NewJS(t, nc), topology.Config{MaxBytesLog: 20 << 30, MaxBytesOutcomes: 20 << 30})
		if fits != (err == nil) {
			t.Errorf("store limit %d: %v", limit, err)
		}
		if !fits && (!jsapi.HasCode(err, jsapi.CodeStorageExceeded) || !strings.Contains(err.Error(), "OUTCOMES")) {
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
		nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js := brokertest.NewJS(t, nc)
		go func() {
			s, err := topology.Ensure(t.Context(), js, topology.Config{Partitions: p + 1, CreateBytes: brokertest.CreateBytes})
			if err != nil {
				t.Error(err)
				got <- 0
				return
			}
			got <- s.Partitions.Count()
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
	w := brokertest.New(t)
	_, err := topology.Ensure(t.Context(), w.JS, topology.Config{Partitions: -1, MaxAge: 1, MaxBytesLog: -2, MaxBytesOutcomes: -2, CreateBytes: -2, Replicas: 9})
	if err == nil || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("error is %v", err)
	}
}

// Two ages are a mismatch that setting one of them repairs.
func TestEnsureAges(t *testing.T) {
	w := brokertest.New(t)
	out, _ := w.JS.Stream(t.Context(), topology.OutcomesStream)
	c := out.CachedInfo().Config
	c.MaxAge = time.Hour
	if _, err := w.JS.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err := topology.Ensure(t.Context(), w.JS, topology.Config{})
	bad, ok := errors.AsType[*topology.MismatchError](err)
	if !ok || len(bad.Mismatches) != 1 || bad.Mismatches[0].Field != "max age" {
		t.Errorf("two ages: %v", err)
	}
	if s, err := topology.Ensure(t.Context(), w.JS, topology.Config{MaxAge: time.Hour}); err != nil || s.MaxAge != time.Hour {
		t.Errorf("one requested: %+v, %v", s, err)
	}
}

// PartitionOf computes the same as the server's subject transform, for any ids and several numbers
// of partitions. Otherwise a session would be looked up in the wrong partition.
func TestPartitionOfServer(t *testing.T) {
	t.Parallel()
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	rnd := rand.New(rand.NewPCG(1, 2))
	id := func(most int) string {
		b := make([]byte, 1+rnd.IntN(most))
		for i := range b {
			b[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		return string(b)
	}
	for _, partitions := range []int{1, 8, 37} {
		w := brokertest.Open(t, t.TempDir(), topology.Config{Partitions: partitions})
		var want []events.Address
		var acks []jetstream.PubAckFuture
		for range 1000 {
			a := events.Address{Tenant: id(events.MaxTenantLen), Session: id(events.MaxIDLen)}
			subject, err := events.Input(events.KindTurn, a)
			if err != nil {
				t.Fatal(err)
			}
			ack, err := w.JS.PublishMsgAsync(&nats.Msg{Subject: subject, Data: []byte(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			want, acks = append(want, a), append(acks, ack)
		}
		for _, ack := range acks {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				t.Fatal(err)
			}
		}
		n := 0
		err := stream.ReadStream(t.Context(), w.JS, topology.LogStream, "log.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
			at, err := events.ParseLog(m.Subject())
			if err != nil {
				return err
			}
			if at.Address != want[n] || at.Partition != events.PartitionOf(at.Address, partitions) {
				t.Errorf("%d partitions: %s is stored as %s, not in partition %d", partitions, want[n], m.Subject(), events.PartitionOf(want[n], partitions))
			}
			n++
			return nil
		})
		if err != nil || n != len(want) {
			t.Errorf("%d partitions: %d events are stored, %v", partitions, n, err)
		}
	}
}
