package commit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

var ignoreCommit = cmpopts.IgnoreUnexported(Stored{})

// A partition starts at epoch 1, and every commit, whatever its size, leaves its
// marker on its last message and moves the fence there.
func TestCommit(t *testing.T) {
	w := newEnv(t)
	c, found, err := TakeOver(t.Context(), w.NC, Claim{Partition: 1, Owner: "me", Config: "c1", LogCreated: 77})
	if err != nil {
		t.Fatal(err)
	}
	if found != (Stored{}) || c.Epoch() != 1 {
		t.Errorf("a fresh partition has %+v, epoch %d", found, c.Epoch())
	}
	if diff := cmp.Diff(Marker{Owner: "me", Epoch: 1, Config: "c1", LogCreated: 77, Taken: true}, w.marker(1).Marker); diff != "" {
		t.Errorf("first marker: %s", diff)
	}
	for i, n := range []int{0, 1, 2, 7, 1, 0} {
		before := w.State(topology.OutcomesStream).Last
		m := Marker{Cursor: uint64(i + 1), Config: "c1", Chain: 1<<64 - 1, LastID: "id \"é\"\r\n", LastTime: 5, LogCreated: 77}
		if err := c.Commit(t.Context(), budgets(n, "x"), m); err != nil {
			t.Fatal(err)
		}
		m.Owner, m.Epoch = "me", 1
		s := w.marker(1)
		want := Stored{Marker: m, Seq: before + uint64(max(n, 1))}
		if diff := cmp.Diff(want, s, ignoreCommit, cmpopts.IgnoreFields(Stored{}, "Time")); diff != "" {
			t.Errorf("%d messages: %s", n, diff)
		}
		if c.LastSeq() != s.Seq {
			t.Errorf("%d messages: fence is %d, last message %d", n, c.LastSeq(), s.Seq)
		}
	}
	if got, want := len(w.stored("out.1.budget.>")), 1+2+7+1; got != want {
		t.Errorf("%d outcomes are stored, not %d", got, want)
	}
	if got := w.marker(0); got.Seq != 0 {
		t.Errorf("partition 0 has a marker: %+v", got)
	}
}

// Who reads OUTCOMES in order finds the markers where commits ended, only there.
func TestParseHeader(t *testing.T) {
	w := newEnv(t)
	c := w.takeOver("me")
	for i, n := range []int{3, 1} {
		if err := c.Commit(t.Context(), budgets(n, "x"), Marker{Cursor: uint64(i + 10)}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[uint64]uint64{}
	err := stream.ReadStream(t.Context(), w.JS, topology.OutcomesStream, events.OutcomeFilter(1), 0, 0, func(m jetstream.Msg, seq uint64) error {
		marker, ok, err := parseHeader(m.Headers())
		if ok {
			got[seq] = marker.Cursor
		}
		return err
	})
	if diff := cmp.Diff(map[uint64]uint64{1: 0, 4: 10, 5: 11}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, _, err := parseHeader(nats.Header{HeaderMarker: {"{"}}); err == nil {
		t.Error("a broken marker was read")
	}
}

// Agents see what was committed, in order, and nothing of a commit that was
// refused; jobs, markers and configs are not for them.
func TestRepublish(t *testing.T) {
	w := newEnv(t)
	zombie := w.takeOver("old")
	c := w.takeOver("new")
	sub, err := w.NC.SubscribeSync("session.>")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.NC.Flush()
	if err := zombie.Commit(t.Context(), budgets(3, "refused"), Marker{}); !errors.Is(err, ErrFenced) {
		t.Errorf("batch of a zombie: %v", err)
	}
	if err := zombie.Commit(t.Context(), budgets(1, "refused"), Marker{}); !errors.Is(err, ErrFenced) {
		t.Errorf("message of a zombie: %v", err)
	}
	if err := PutConfig(t.Context(), w.JS, "cfg", []byte("text"), 0); err != nil {
		t.Fatal(err)
	}
	msgs := append(budgets(2, "published"), Message{Subject: "out.1.job.normal.t.s0", Data: []byte("job")})
	if err := c.Commit(t.Context(), msgs, Marker{Cursor: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), nil, Marker{Cursor: 2}); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), budgets(1, "end"), Marker{Cursor: 3}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 3 {
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Subject+" "+string(m.Data)+" "+m.Header.Get("Nats-Last-Sequence"))
	}
	want := []string{"session.budget.t.s0 published 0", "session.budget.t.s1 published 0", "session.budget.t.s0 end 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The largest commits pass: 900 messages, and bodies up to the server's limit to the
// byte. A larger one is refused before anything is sent.
func TestCommitLimits(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.takeOver("me")
	if err := c.Commit(t.Context(), budgets(MaxBatch, "x"), Marker{Cursor: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), budgets(MaxBatch+1, "x"), Marker{}); err == nil {
		t.Error("a batch over the limit was taken")
	}
	// TooLargeError has how large it was with headers, so the second try fits.
	big := budgets(1, strings.Repeat("x", embedded.DefaultMaxPayload))
	err := c.Commit(t.Context(), big, Marker{Cursor: 2})
	tooLarge, ok := errors.AsType[*TooLargeError](err)
	if !ok {
		t.Fatal(err)
	}
	big[0].Data = big[0].Data[:embedded.DefaultMaxPayload-(tooLarge.Size-tooLarge.Limit)]
	if err := c.Commit(t.Context(), big, Marker{Cursor: 2}); err != nil {
		t.Errorf("a message of exactly the limit: %v", err)
	}
	big[0].Data = append(big[0].Data, 'x')
	err = c.Commit(t.Context(), big, Marker{Cursor: 2})
	if tooLarge, ok = errors.AsType[*TooLargeError](err); !ok || tooLarge.Size != tooLarge.Limit+1 {
		t.Errorf("one byte more: %v", err)
	}
	big[0].Data = append(big[0].Data, make([]byte, 1<<10)...) // a batch has other headers
	if err := c.Commit(t.Context(), append(budgets(2, "x"), big...), Marker{Cursor: 2}); !errors.As(err, &tooLarge) {
		t.Errorf("in a batch: %v", err)
	}
	if err := c.Commit(t.Context(), budgets(2, "after"), Marker{Cursor: 3}); err != nil {
		t.Errorf("the committer is spent: %v", err)
	}
}

// A hostile id becomes neither a subject outside of the fence nor one that nothing
// takes.
func TestCommitSubjects(t *testing.T) {
	w := newEnv(t)
	c := w.takeOver("me")
	before := w.State(topology.OutcomesStream).Last
	for _, s := range []string{
		"", "out.1.", "out.1", "out.2.budget.t.s", "out.11.budget.t.s", "session.turn.t.s", "out.1.budget.*.s", "out.1.budget.t.>",
		"out.1.budget..s", "out.1.budget.t.s\r\nPUB x 0", "out.1.budget.t.a b", "out.1.budget.t.\x00", "out.config.x",
	} {
		if err := c.Commit(t.Context(), append(budgets(1, "x"), Message{Subject: s}), Marker{}); err == nil {
			t.Errorf("subject %q was taken", s)
		}
	}
	if after := w.State(topology.OutcomesStream).Last; after != before {
		t.Errorf("%d messages were stored", after-before)
	}
	if err := c.Commit(t.Context(), budgets(2, "x"), Marker{LastID: "bad \xff utf-8", Config: "<&>"}); err != nil {
		t.Errorf("an id that is not UTF-8: %v", err)
	}
	if got := w.marker(1).LastID; got != "bad \uFFFD utf-8" {
		t.Errorf("it is stored as %q", got)
	}
}

// Two that take over at once: both may own the partition, one after the
// other, but only the later one can commit.
func TestTakeOverRace(t *testing.T) {
	w := newEnv(t)
	conns := []*nats.Conn{w.Connect(connect.Options{}), w.Connect(connect.Options{})}
	for round := range 20 {
		var wg sync.WaitGroup
		cs, errs := make([]*Committer, 2), make([]error, 2)
		for i, nc := range conns {
			wg.Go(func() {
				// The same name on purpose: not even that may let both in.
				c, _, err := TakeOver(t.Context(), nc, Claim{Partition: 1, Owner: "same"})
				if err != nil {
					t.Error(err)
					return
				}
				cs[i] = c
				errs[i] = c.Commit(t.Context(), budgets(1+round%3, fmt.Sprint(round)), Marker{Cursor: uint64(round)})
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		last := 0
		if cs[1].Epoch() > cs[0].Epoch() {
			last = 1
		}
		if cs[0].Epoch() == cs[1].Epoch() || errs[last] != nil {
			t.Fatalf("round %d: epochs %d and %d, errors %v", round, cs[0].Epoch(), cs[1].Epoch(), errs)
		}
		// The other one committed before it was fenced, or not at all; now it cannot.
		if err := errs[1-last]; err != nil && !errors.Is(err, ErrFenced) {
			t.Errorf("round %d: %v", round, err)
		}
		if err := cs[1-last].Commit(t.Context(), budgets(2, "zombie"), Marker{}); !errors.Is(err, ErrFenced) {
			t.Errorf("round %d: zombie got %v", round, err)
		}
		if m := w.marker(1); m.Epoch != cs[last].Epoch() || m.Seq != cs[last].LastSeq() {
			t.Errorf("round %d: the marker is of epoch %d at %d", round, m.Epoch, m.Seq)
		}
	}
	for _, s := range w.stored("out.1.>") {
		if strings.HasSuffix(s, "zombie") {
			t.Errorf("a zombie stored %s", s)
		}
	}
}

// A zombie whose batch was already on its way when the partition changed hands
// stores nothing of it.
func TestStagedBatchIsFenced(t *testing.T) {
	w := newEnv(t)
	nc := w.Connect(connect.Options{})
	old := w.takeOverOn(nc, "old")
	batch, err := old.batch(budgets(3, "zombie"), markerText{Marker{Owner: "old", Epoch: 1}, "id"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range batch[:2] {
		if _, err := nc.RequestMsg(m, time.Minute); err != nil { // answered: the server has it
			t.Fatal(err)
		}
	}
	w.takeOver("new")
	reply, err := nc.RequestMsg(batch[2], time.Minute)
	if err != nil || !strings.Contains(string(reply.Data), "10071") {
		t.Errorf("the end of the batch: %s, %v", reply.Data, err)
	}
	if got := w.stored("out.1.budget.>"); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
}

// The answer to a commit, or the commit itself, is lost with the link: it is
// stored exactly once all the same.
func TestLostLink(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	u, err := url.Parse(w.Srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	link := brokertest.NewWire(t, u.Host)
	nc, err := connect.Open(t.Context(), connect.Options{URL: link.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c := w.takeOverOn(nc, "me")
	want := 0
	for _, f := range []brokertest.Fault{brokertest.LoseAnswer, brokertest.LoseRequest} {
		for _, n := range []int{0, 1, 5} {
			hit := link.Arm(f, jsapi.HeaderFence)
			go func() { <-hit; _ = w.NC.Flush(); link.Cut() }()
			m := Marker{Cursor: uint64(want), Chain: 1}
			if err := c.Commit(brokertest.Within(t, time.Minute), budgets(n, "x"), m); err != nil {
				t.Fatalf("fault %d, %d messages: %v", f, n, err)
			}
			want += n
			if got := len(w.stored("out.1.budget.>")); got != want {
				t.Errorf("fault %d, %d messages: %d are stored, not %d", f, n, got, want)
			}
			if s := w.marker(1); s.Seq != c.LastSeq() {
				t.Errorf("fault %d, %d messages: fence is %d, not %d", f, n, c.LastSeq(), s.Seq)
			}
		}
	}
	// A take-over in the dark adds one epoch, not two.
	hit := link.Arm(brokertest.LoseAnswer, jsapi.HeaderFence)
	go func() { <-hit; _ = w.NC.Flush(); link.Cut() }()
	if c := w.takeOverOn(nc, "you"); c.Epoch() != 2 || w.marker(1).Epoch != 2 {
		t.Errorf("epoch is %d, stored %d", c.Epoch(), w.marker(1).Epoch)
	}
}

// A commit given up while its answer was out: if it was stored, the next one is
// refused as diverged, and a new take-over finds it; if not, nothing is amiss.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for _, f := range []brokertest.Fault{brokertest.LoseAnswer, brokertest.LoseRequest} {
		w := newEnv(t)
		u, _ := url.Parse(w.Srv.ClientURL())
		link := brokertest.NewWire(t, u.Host)
		nc, err := connect.Open(t.Context(), connect.Options{URL: link.URL()})
		if err != nil {
			t.Fatal(err)
		}
		c := w.takeOverOn(nc, "me")
		seen, err := w.NC.SubscribeSync("session.budget.t.s0")
		if err != nil {
			t.Fatal(err)
		}
		_ = w.NC.Flush()
		ctx, cancel := context.WithCancel(t.Context())
		hit := link.Arm(f, jsapi.HeaderFence)
		go func() {
			defer cancel()
			<-hit
			if f == brokertest.LoseAnswer {
				if _, err := seen.NextMsg(time.Minute); err != nil { // it is stored
					return
				}
			}
		}()
		if err := c.Commit(ctx, budgets(1, "x"), Marker{Cursor: 7}); !errors.Is(err, context.Canceled) {
			t.Errorf("fault %d: %v", f, err)
		}
		link.Cut()
		err = c.Commit(brokertest.Within(t, time.Minute), budgets(2, "y"), Marker{Cursor: 8})
		if f == brokertest.LoseAnswer {
			if !errors.Is(err, ErrDiverged) {
				t.Errorf("after a commit that was stored: %v", err)
			}
			_, found, err := TakeOver(t.Context(), nc, Claim{Partition: 1, Owner: "me"})
			if err != nil || found.Cursor != 7 {
				t.Errorf("take-over finds %+v, %v", found, err)
			}
		} else if err != nil {
			t.Errorf("after a commit that was lost: %v", err)
		}
		nc.Close()
	}
}

// When the stream ends before the fence the owner must not go on: what it holds
// for stored is not.
func TestDiverged(t *testing.T) {
	w := newEnv(t)
	c := w.takeOver("me")
	for i := range 2 {
		if err := c.Commit(t.Context(), budgets(1, "x"), Marker{Cursor: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := w.JS.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.DeleteMsg(t.Context(), c.LastSeq()); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), budgets(1, "y"), Marker{Cursor: 3}); !errors.Is(err, ErrDiverged) {
		t.Errorf("after the end was deleted: %v", err)
	}
	if err := out.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), nil, Marker{Cursor: 3}); !errors.Is(err, ErrDiverged) {
		t.Errorf("after everything was purged: %v", err)
	}
}

// A full stream refuses the commit as a whole, and takes it when there is room.
func TestStoreFull(t *testing.T) {
	w := openEnv(t, t.TempDir(), topology.Config{MaxBytesOutcomes: 64 << 10})
	c := w.takeOver("me")
	for _, n := range []int{1, 40} {
		msgs := budgets(n, strings.Repeat("x", 80<<10/n))
		before := w.State(topology.OutcomesStream).Messages
		err := c.Commit(t.Context(), msgs, Marker{Cursor: 1})
		full, ok := errors.AsType[*StoreFullError](err)
		if !ok || full.Code != int(jsapi.CodeStoreFailed) {
			t.Fatalf("%d messages: %v", n, err)
		}
		if after := w.State(topology.OutcomesStream).Messages; after != before {
			t.Errorf("%d of %d messages were stored", after-before, n)
		}
	}
	if _, err := topology.Ensure(t.Context(), w.JS, topology.Config{MaxBytesOutcomes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), budgets(40, strings.Repeat("x", 2<<10)), Marker{Cursor: 1}); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// The server holds at most 50 open batches of a stream, abandoned ones for ten
// seconds. A commit waits for a place. In fake time: those ten seconds are no race with
// the test.
func TestTooManyBatches(t *testing.T) {
	dir := t.TempDir()
	brokertest.EmptyPools()
	defer brokertest.EmptyPools()
	ats.Register() // a clock of the server's own, which must not be one of the bubble's
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		srv, err := embedded.Start(embedded.Config{Dir: dir, Durability: embedded.DurablePower}) // without writes in the background
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(time.Minute) // goroutines of the server end
		defer srv.Stop()
		w := &env{&brokertest.Env{T: t, Srv: srv}}
		w.NC = w.Connect(connect.Options{})
		w.JS = brokertest.NewJS(t, w.NC)
		if _, err := topology.Ensure(t.Context(), w.JS, topology.Config{Partitions: 4, CreateBytes: brokertest.CreateBytes}); err != nil {
			t.Fatal(err)
		}
		stage := func(id string, seq string, commit bool) {
			m := &nats.Msg{Subject: "out.9.x", Header: nats.Header{jsapi.HeaderBatchID: {id}, jsapi.HeaderBatchSeq: {seq}}}
			if commit {
				m.Header[jsapi.HeaderBatchCommit] = []string{"1"}
			}
			if _, err := w.NC.RequestMsg(m, time.Minute); err != nil {
				t.Error(err)
			}
		}
		for i := range 50 {
			stage(fmt.Sprint("abandoned", i), "1", false)
		}
		var codes []jetstream.ErrorCode
		free := sync.OnceFunc(func() { stage("abandoned7", "2", true) })
		nc := w.Connect(connect.Options{})
		defer nc.Close()
		c, _, err := TakeOver(t.Context(), nc, Claim{Partition: 1, Owner: "me", OnRetry: func(err error) {
			api, _ := errors.AsType[*jetstream.APIError](err)
			codes = append(codes, api.ErrorCode)
			free()
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(brokertest.Within(t, time.Minute), budgets(2, "x"), Marker{Cursor: 1}); err != nil {
			t.Fatal(err)
		}
		// The rest of a refused batch was refused too, so the retry came on its own id.
		if len(codes) == 0 || codes[0] != jsapi.CodeBatchIncomplete && codes[0] != jsapi.CodeBatchesInFlight {
			t.Errorf("retried after %v", codes)
		}
		if got := w.stored("out.1.budget.>"); len(got) != 2 {
			t.Errorf("stored: %v", got)
		}
		w.NC.Close()
	})
}

// How every answer of the server is read.
func TestAnswers(t *testing.T) {
	kind := func(err error) string {
		unknown, err := classify(err)
		_, full := errors.AsType[*StoreFullError](err)
		_, large := errors.AsType[*TooLargeError](err)
		switch {
		case unknown:
			return "ask"
		case full:
			return "full"
		case large:
			return "large"
		case retry.IsFinal(err):
			return "final"
		default:
			return "again"
		}
	}
	for code, want := range map[jetstream.ErrorCode]string{
		10071: "ask",
		10008: "again", 10009: "again", 10118: "again", 10163: "again", 10164: "again", 10176: "again", 10194: "again", 10210: "again",
		10002: "full", 10023: "full", 10047: "full", 10077: "full", 10122: "full",
		10054: "large", 10097: "large",
		10109: "final", 10174: "final", 10199: "final", 10201: "final",
	} {
		if got := kind(fmt.Errorf("x: %w", &refusal{APIError: &jetstream.APIError{ErrorCode: code}})); got != want {
			t.Errorf("%d: %s, not %s", code, got, want)
		}
	}
	if got := kind(&refusal{APIError: &jetstream.APIError{ErrorCode: 10077, Description: "message too large"}}); got != "large" {
		t.Errorf("10077, message too large: %s", got)
	}
	for err, want := range map[error]string{
		jsapi.ErrNoAnswer: "ask", nats.ErrNoResponders: "ask", nats.ErrReconnectBufExceeded: "ask", nats.ErrDisconnected: "ask",
		nats.ErrConnectionClosed: "final", context.Canceled: "final", context.DeadlineExceeded: "final",
	} {
		if got := kind(err); got != want {
			t.Errorf("%v: %s, not %s", err, got, want)
		}
	}
}

// A commit on a connection that was closed, or to a stream that was deleted, ends
// at once; without a server it ends with its context.
func TestCommitEnds(t *testing.T) {
	w := newEnv(t)
	c := w.takeOver("me")
	if err := w.JS.DeleteStream(t.Context(), topology.OutcomesStream); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), nil, Marker{}); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("without a stream: %v", err)
	}
	w.Srv.Stop()
	if err := c.Commit(brokertest.Within(t, 50*time.Millisecond), nil, Marker{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a server: %v", err)
	}
	c.nc.Close()
	if err := c.Commit(t.Context(), nil, Marker{}); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("without a connection: %v", err)
	}
	if _, _, err := TakeOver(t.Context(), c.nc, Claim{Partition: 1}); err == nil {
		t.Error("no owner took over")
	}
}

// Stored subjects and partitions are those of package events.
func TestPartition(t *testing.T) {
	w := newEnv(t)
	for i := range 20 {
		w.Turn(fmt.Sprintf("s%d", i), "x")
	}
	seen := map[int]bool{}
	err := stream.ReadStream(t.Context(), w.JS, topology.LogStream, "log.>", 0, 0, func(m jetstream.Msg, seq uint64) error {
		l, err := events.ParseLog(m.Subject())
		if err == nil && (l.Partition >= 4 || l.Address.Session != fmt.Sprintf("s%d", seq-1)) {
			err = fmt.Errorf("message %d is %+v", seq, l)
		}
		seen[l.Partition] = true
		return err
	})
	if err != nil || len(seen) != 4 {
		t.Errorf("partitions %v, %v", seen, err)
	}
}
