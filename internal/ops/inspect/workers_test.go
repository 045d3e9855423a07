package inspect_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/inspect"
)

// finding returns the first of a check.
func finding(t *testing.T, p inspect.Target, check string) inspect.Finding {
	t.Helper()
	p.Data = private(t)
	d := inspect.Diagnose(t.Context(), p)
	i := slices.IndexFunc(d.Findings, func(f inspect.Finding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("no %s in %+v", check, d.Findings)
	}
	return d.Findings[i]
}

// join makes a worker one of those that run.
func join(t *testing.T, js jetstream.JetStream, owner string) {
	t.Helper()
	if err := coord.NewMembers(js, time.Minute).Heartbeat(t.Context(), coord.Member{Name: owner, Owner: owner}); err != nil {
		t.Fatal(err)
	}
}

// A directory that other users may enter is a problem, whichever of the three it is.
func TestDiagnoseDirectories(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	for _, name := range []string{"", "nats", "ledgers"} {
		dir := private(t)
		open := filepath.Join(dir, name)
		if err := os.MkdirAll(open, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
		diagnose(t, inspect.Target{Conn: nc, Data: dir}, "directory: directory "+open+" has mode 0755: other users of this machine may read")
	}
}

// A decision of an hour ago that is in no snapshot is a problem; so is one of ten
// minutes ago without a checkpoint since.
func TestDiagnoseCopies(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	at := events.Address{Tenant: "acme", Session: "s"}
	id := events.PartitionOf(at, 2)
	log, err := topology.State(t.Context(), js, topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	claim := commit.Claim{Partition: id, Owner: "a", LogCreated: log.Created.UnixNano()}
	c, _, err := commit.TakeOver(t.Context(), nc, claim)
	if err != nil {
		t.Fatal(err)
	}
	store := snapshot.New(js)
	for p := range 2 {
		u, err := store.Begin(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Put(t.Context(), commit.Marker{LogCreated: claim.LogCreated}, 0, strings.NewReader("a ledger file")); err != nil {
			t.Fatal(err)
		}
	}
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		data, err := codec.Marshal(&events.FleetResponse{
			Workers:    []events.FleetWorker{{Owner: "a", HTTP: "127.0.0.1:1", Answered: true}},
			Partitions: []events.FleetPartition{{Partition: int64(id), Owner: "a", Served: true, Checkpoint: time.Now().Add(-time.Minute).UnixMilli()}},
		})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(worker.Close)
	p := inspect.Target{Conn: nc, HTTP: worker.Listener.Addr().String()}
	join(t, js, "a")
	diagnose(t, p, "")
	if f := finding(t, p, "checkpoint"); f.Level != inspect.LevelOK || !strings.HasPrefix(f.Message, "the last one was 1m") {
		t.Errorf("%+v", f)
	}
	if f := finding(t, p, "console"); f.Level != inspect.LevelOK {
		t.Errorf("%+v", f)
	}

	ack, err := js.Publish(t.Context(), events.Published(events.KindTurn, at), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), nil, commit.Marker{Cursor: ack.Sequence, LogCreated: claim.LogCreated}); err != nil {
		t.Fatal(err)
	}
	diagnose(t, p, "")
	p.Now = func() time.Time { return time.Now().Add(20 * time.Minute) }
	diagnose(t, p, "checkpoint: partition ")
	p.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	diagnose(t, p, "snapshots: that of partition ")
}

// TestMain gives all tests a proxy that does not run: a request through it fails.
func TestMain(m *testing.M) {
	if err := os.Setenv("HTTP_PROXY", "http://127.0.0.1:9"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// The doctor sends the token to the worker itself, past a proxy of the environment.
func TestDiagnosePastProxies(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(`{"workers":[{"owner":"a"}]}`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(worker.Close)
	join(t, js, "a")
	_, port, _ := strings.Cut(worker.Listener.Addr().String(), ":")
	finding(t, inspect.Target{Conn: nc, HTTP: "0.0.0.0:" + port, Token: "secret"}, "checkpoint") // no proxy serves a loopback address
}

// A console that other machines reach is a note, and a problem where it answers without a token.
func TestDiagnoseConsole(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	token := "secret"
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, port, _ := strings.Cut(r.Host, ":")
		_, err := w.Write([]byte(`{"workers":[{"owner":"a","http":"0.0.0.0:` + port + `"}]}`))
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(worker.Close)
	p := inspect.Target{Conn: nc, HTTP: worker.Listener.Addr().String(), Token: token}
	join(t, js, "b") // and a is a worker of another server
	if f := finding(t, p, "console"); f.Level != inspect.LevelNote || !strings.Contains(f.Message, "serve another log") {
		t.Errorf("%+v", f)
	}
	join(t, js, "a")
	if f := finding(t, p, "console"); f.Level != inspect.LevelNote || !strings.Contains(f.Message, "other machines reach it") {
		t.Errorf("%+v", f)
	}
	token = ""
	diagnose(t, p, "console: 0.0.0.0:")
	worker.Close()
	if f := finding(t, p, "console"); f.Level != inspect.LevelNote || !strings.HasPrefix(f.Message, "no worker answers at ") {
		t.Errorf("%+v", f)
	}
}
