package inspect_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/ops/inspect"
)

func dial(t *testing.T, c embedded.Config) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	c.Dir = t.TempDir()
	s, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	nc, err := connect.Open(context.Background(), connect.Options{InProcess: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// ensure makes the streams, and a worker that holds both partitions.
func ensure(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if _, err := topology.Ensure(t.Context(), js, topology.Config{Partitions: 2, CreateBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureAudit(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	own(t, js, 0)
	own(t, js, 1)
}

func own(t *testing.T, js jetstream.JetStream, id int) *coord.Lease {
	t.Helper()
	l, err := coord.NewLeases(js, time.Hour).Acquire(t.Context(), id, coord.Holder{Member: "m", Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, js jetstream.JetStream, l *coord.Lease) {
	t.Helper()
	if err := coord.NewLeases(js, time.Hour).Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// serve starts a server with users.
func serve(t *testing.T, users ...*server.User) *server.Server {
	t.Helper()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: 8 << 20, Users: users,
	})
	if err != nil {
		t.Fatal(err)
	}
	go ns.Start()
	t.Cleanup(ns.Shutdown)
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return ns
}

// private is a directory as workers make it.
func private(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// diagnose wants a problem, or none for "".
func diagnose(t *testing.T, p inspect.Target, problem string) {
	t.Helper()
	p.Data = cmp.Or(p.Data, private(t))
	d := inspect.Diagnose(t.Context(), p)
	found := problem == ""
	for _, f := range d.Findings {
		is := f.Level == inspect.LevelProblem
		if is && problem == "" {
			t.Errorf("problem %+v", f)
		}
		found = found || is && strings.Contains(f.Check+": "+f.Message, problem)
	}
	if !found || d.Healthy() != (problem == "") {
		t.Errorf("healthy %t, want %q of %+v", d.Healthy(), problem, d.Findings)
	}
}

// Each thing that can be wrong with a server is a problem, alone.
func TestDiagnose(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	p := inspect.Target{Conn: nc}
	diagnose(t, p, "streams: the server has no compactd streams")
	ensure(t, js)
	diagnose(t, p, "")

	for _, shift := range []time.Duration{-time.Hour, time.Hour} {
		p.Now = func() time.Time { return time.Now().Add(shift) }
		diagnose(t, p, "clock: the server's clock is ")
	}
	p.Now = nil

	claim := commit.Claim{Partition: 1, Owner: "a", LogCreated: 1}
	if _, _, err := commit.TakeOver(t.Context(), nc, claim); err != nil {
		t.Fatal(err)
	}
	diagnose(t, p, "markers: partition 1: its outcomes belong to another log")
}

// A truncated log, and an outcome that no worker wrote.
func TestDiagnoseMarkers(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	log, err := topology.State(t.Context(), js, topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	created := log.Created.UnixNano()
	c, _, err := commit.TakeOver(t.Context(), nc, commit.Claim{Partition: 1, Owner: "a", LogCreated: created})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), nil, commit.Marker{Cursor: 7, LogCreated: created}); err != nil {
		t.Fatal(err)
	}
	p := inspect.Target{Conn: nc}
	diagnose(t, p, "markers: partition 1: log truncated: last sequence 0, outcomes committed up to 7")
	if _, err := js.Publish(t.Context(), events.Marker(0), nil); err != nil {
		t.Fatal(err)
	}
	diagnose(t, p, "outcomes: 1 messages in OUTCOMES within 1h are of no worker, the last at sequence")
}

// Every setting that a worker would not start with is a problem; what it would
// repair by itself at its start too.
func TestDiagnoseStreams(t *testing.T) {
	for want, change := range map[string]func(*jetstream.StreamConfig){
		"streams: OUTCOMES: direct get is true":    func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"streams: OUTCOMES: max age is 1h,":        func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"streams: OUTCOMES: subjects is [out.1.>]": func(c *jetstream.StreamConfig) { c.Subjects = []string{"out.1.>"} },
	} {
		nc, js := dial(t, embedded.Config{})
		ensure(t, js)
		s, err := js.Stream(t.Context(), topology.OutcomesStream)
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		change(&c)
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		diagnose(t, inspect.Target{Conn: nc}, want)
	}
}

// So is what the workers know of each other, when it is not there or ends otherwise.
func TestDiagnoseBuckets(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	s, err := js.Stream(t.Context(), "KV_"+topology.LeasesBucket)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.MaxAge = 2 * time.Hour
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	diagnose(t, inspect.Target{Conn: nc}, "streams: KV_LEASES: max age is 2h, not 0s")
	if err := js.DeleteStream(t.Context(), "KV_"+topology.LeasesBucket); err != nil {
		t.Fatal(err)
	}
	diagnose(t, inspect.Target{Conn: nc}, "streams: KV_LEASES: bucket is missing, not there; the next worker that starts creates it")
}

// So is an audit log that no worker could create.
func TestDiagnoseAudit(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	if err := js.DeleteStream(t.Context(), topology.AuditStream); err != nil {
		t.Fatal(err)
	}
	d := inspect.Diagnose(t.Context(), inspect.Target{Conn: nc, Data: private(t)})
	i := slices.IndexFunc(d.Findings, func(f inspect.Finding) bool { return f.Check == "audit" })
	if d.Healthy() || i < 0 || d.Findings[i].Code != events.CodeStorageLimit || !strings.Contains(d.Findings[i].Hint, "max_file_store") {
		t.Errorf("findings are %+v", d.Findings)
	}
}

// So is a user of a worker that may not write what workers write. One that is none of a worker is
// only named, and the check stores nothing.
func TestDiagnoseAccess(t *testing.T) {
	worker := &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"$KV.PREFIXES.>"}}}
	reader := &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"$JS.API.>", "_INBOX.>"}}}
	ns := serve(t,
		&server.User{Username: "all", Password: "x"},
		&server.User{Username: "worker", Password: "x", Permissions: worker},
		&server.User{Username: "reader", Password: "x", Permissions: reader},
	)
	as := func(user string) *nats.Conn {
		nc, err := connect.Open(t.Context(), connect.Options{URL: "nats://" + user + ":x@" + ns.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	js, err := jetstream.New(as("all"), jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, js)
	diagnose(t, inspect.Target{Conn: as("all")}, "")
	diagnose(t, inspect.Target{Conn: as("worker")}, "access: this user may not publish to $KV.PREFIXES.doctor.check")
	diagnose(t, inspect.Target{Conn: as("reader")}, "")
	for name, last := range map[string]uint64{topology.LogStream: 0, "KV_" + topology.LeasesBucket: 2, "KV_" + topology.PrefixesBucket: 0} {
		if s, err := topology.State(t.Context(), js, name); err != nil || s.Last != last {
			t.Errorf("%s: %v, its last sequence is %d, not %d", name, err, s.Last, last)
		}
	}
}

// A check that the server refuses is one finding with the code forbidden and the subject, at once; the
// others are made.
func TestDiagnoseForbidden(t *testing.T) {
	monitor := &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "compactd.>"}}}
	ns := serve(t,
		&server.User{Username: "all", Password: "x"},
		&server.User{Username: "monitor", Password: "x", Permissions: monitor},
		&server.User{Username: "none", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{">"}}}},
	)
	as := func(user string) inspect.Target {
		r := &inspect.Refusals{}
		nc, err := connect.Open(t.Context(), connect.Options{URL: "nats://" + user + ":x@" + ns.Addr().String(), OnError: r.OnError})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return inspect.Target{Conn: nc, Refusals: r, Data: private(t)}
	}
	js, err := jetstream.New(as("all").Conn, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, js)
	for user, want := range map[string]map[string]string{
		"all": {},
		"monitor": {
			"markers": "$JS.API.STREAM.MSG.GET.OUTCOMES", "partitions": "$JS.API.DIRECT.GET.KV_LEASES.$KV.LEASES.0",
			"rejections": "$JS.API.CONSUMER.CREATE.OUTCOMES.", "outcomes": "$JS.API.CONSUMER.CREATE.OUTCOMES.", "snapshots": "$JS.API.STREAM.MSG.GET.OBJ_SNAPSHOTS",
		},
		"none": {"streams": "$JS.API.STREAM.INFO.SESSIONS"},
	} {
		d := inspect.Diagnose(t.Context(), as(user))
		got := map[string]string{}
		for _, f := range d.Findings {
			if f.Code == "" {
				continue
			}
			if f.Level != inspect.LevelProblem || f.Code != events.CodeForbidden || f.Hint == "" || !strings.Contains(f.Message, `"`+want[f.Check]) {
				t.Errorf("%s: %+v", user, f)
			}
			got[f.Check] = want[f.Check]
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: checks that were refused:\n%s", user, diff)
		}
	}
}

// A stream without room for another event is a problem.
func TestDiagnoseFull(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	if _, err := topology.Ensure(t.Context(), js, topology.Config{Partitions: 2, MaxBytesLog: 10_000, CreateBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	at := events.Published(events.KindTurn, events.Address{Tenant: "default", Session: "s1"})
	for {
		if _, err := js.Publish(t.Context(), at, make([]byte, 10)); err != nil {
			break
		}
	}
	diagnose(t, inspect.Target{Conn: nc}, "streams: SESSIONS has too little room: it holds 9.")
}

// Messages behind a marker are counted, partition by partition, and the consumer that
// counted it is gone.
func TestDescribe(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	if _, err := inspect.Describe(t.Context(), js, t.TempDir()); err == nil || !strings.Contains(err.Error(), topology.ErrNoStreams.Error()) {
		t.Errorf("without streams: %v", err)
	}
	ensure(t, js)
	at := events.Address{Tenant: "default", Session: "s1"}
	for range 5 {
		if _, err := js.Publish(t.Context(), events.Published(events.KindTurn, at), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	mine := events.PartitionOf(at, 2)
	c, _, err := commit.TakeOver(t.Context(), nc, commit.Claim{Partition: mine, Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), nil, commit.Marker{Cursor: 2}); err != nil {
		t.Fatal(err)
	}
	r, err := inspect.Describe(t.Context(), js, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, other := r.Partitions[mine], r.Partitions[1-mine]
	if got.Owner != "a" || got.Epoch != 1 || got.Cursor != 2 || got.Behind != 3 || got.File != nil {
		t.Errorf("partition %d: %+v", mine, got)
	}
	if other.Owner != "" || other.Behind != 0 || other.LagMS != 0 {
		t.Errorf("the other: %+v", other)
	}
	s, err := js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("%d consumers are left", n)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil || !strings.Contains(text.String(), "none yet") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// Events that no worker decides are a problem, with the first of them; rejections are counted by
// code.
func TestDiagnosePartitions(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	ack, err := js.Publish(t.Context(), "session.turn.acme.s", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := events.PartitionOf(events.Address{Tenant: "acme", Session: "s"}, 2)
	p := inspect.Target{Conn: nc}
	diagnose(t, p, "")
	release(t, js, own(t, js, id))
	diagnose(t, p, fmt.Sprintf("partitions: 1 of 2 have no owner, and no event of theirs is decided: %d", id))
	p.Now = func() time.Time { return time.Now().Add(90*time.Minute + 10*time.Second) }
	diagnose(t, p, fmt.Sprintf("partitions: partition %d: its events wait for 1h30m, the first at sequence %d: no worker serves it", id, ack.Sequence))
	own(t, js, id)
	diagnose(t, p, "does not decide them")
	p.Now = func() time.Time { return time.Now().Add(29*24*time.Hour - time.Minute) }
	diagnose(t, p, fmt.Sprintf("expiry: partition %d: the log drops sequence %d in 1d, before it is decided", id, ack.Sequence))

	log, err := topology.State(t.Context(), js, topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	created := log.Created.UnixNano()
	c, _, err := commit.TakeOver(t.Context(), nc, commit.Claim{Partition: id, Owner: "a", LogCreated: created})
	if err != nil {
		t.Fatal(err)
	}
	at := events.Address{Tenant: "acme", Session: "s"}
	rejected := commit.Message{Subject: events.Outcome(id, events.KindRejected, at), Data: fmt.Appendf(nil, `{"seq":%d,"code":"bad_json"}`, ack.Sequence)}
	if err := c.Commit(t.Context(), []commit.Message{rejected, rejected}, commit.Marker{Cursor: ack.Sequence, LogCreated: created}); err != nil {
		t.Fatal(err)
	}
	p.Now, p.Data = nil, private(t)
	want := fmt.Sprintf("2 within 1h, the last of the event at sequence %d: bad_json 2", ack.Sequence)
	if d := inspect.Diagnose(t.Context(), p); !slices.ContainsFunc(d.Findings, func(f inspect.Finding) bool {
		return f.Check == "rejections" && f.Level == inspect.LevelNote && strings.HasPrefix(f.Message, want)
	}) {
		t.Errorf("no %q in %+v", want, d.Findings)
	}
}

// While OUTCOMES is nearly full, the tenants whose compactions hold most of it are
// named.
func TestDiagnoseTenants(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	c, _, err := commit.TakeOver(t.Context(), nc, commit.Claim{Partition: 0, Owner: "w"})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(tenant string, bytes int) {
		subject := events.Outcome(0, events.KindCompacted, events.Address{Tenant: tenant, Session: "s"})
		if err := c.Commit(t.Context(), []commit.Message{{Subject: subject, Data: make([]byte, bytes)}}, commit.Marker{}); err != nil {
			t.Fatal(err)
		}
	}
	note := func() string {
		d := inspect.Diagnose(t.Context(), inspect.Target{Conn: nc, Data: private(t)})
		i := slices.IndexFunc(d.Findings, func(f inspect.Finding) bool { return f.Check == "tenants" })
		if i < 0 {
			return ""
		}
		return d.Findings[i].Message
	}
	publish("small", 10<<10)
	publish("heavy", 300<<10)
	if got := note(); got != "" {
		t.Errorf("a third full: %q", got)
	}
	publish("heavy", 300<<10)
	publish("middle", 250<<10)
	if got, want := note(), "OUTCOMES is more than 80 % full; most of its compactions are of heavy 600 KiB, middle 250 KiB, small 10 KiB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A user whom the server takes without a password is a problem, and named. A server without users is
// a note.
func TestDiagnosePasswords(t *testing.T) {
	run := func(users ...*server.User) *nats.Conn {
		ns := serve(t, users...)
		nc, err := connect.Open(t.Context(), connect.Options{URL: "nats://all:x@" + ns.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		ensure(t, js)
		return nc
	}
	all := &server.User{Username: "all", Password: "x"}
	p := inspect.Target{Dial: inspect.DialAs(connect.Options{User: "all", Password: "x"})}
	p.Conn = run(all, &server.User{Username: "operator"}, &server.User{Username: "worker", Password: "x"})
	diagnose(t, p, "passwords: the server takes an empty password of operator")
	p.Conn = run(all, &server.User{Username: "operator", Password: "x"})
	diagnose(t, p, "")
	p.Conn = run()
	diagnose(t, p, "")
}
