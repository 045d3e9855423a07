package scenarios_test

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/tokens"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/service"
)

// The audit log has operators' reads of content, and each compaction, rewind and erasure, over HTTP and NATS; a
// tenant's reads of its own sessions are none. It has no content, no client can delete from it, and an event that is
// decided again by the next owner is there once.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	w := env.StartReady("a", observe.Listener{})
	env.Publish(events.KindTurn, "s", []byte(`{"turn":1,"messages":[{"role":"user","content":"c4n4ry"}]}`))
	env.AwaitDecided()
	if got := env.Audit(audit.Selection{}); got != nil {
		t.Errorf("before anything there is %v", got)
	}
	for _, r := range []struct{ subject, in string }{
		{events.SubjectContext, `{"session":"s"}`},
		{events.SubjectRecall, `{"session":"s","text":"c4n4ry"}`},
		{events.SubjectStats, `{"session":"s"}`},                               // figures alone
		{events.OfTenant(events.SubjectContext, "default"), `{"session":"s"}`}, // the tenant itself
	} {
		if e := env.Request(r.subject, r.in, &events.SearchResponse{}); e != nil {
			t.Fatalf("%s: %v", r.subject, e)
		}
	}
	mux := &service.Mux{}
	served := func() (*service.Service, error) { return w.Worker.Service(), nil }
	service.ServeHTTP(mux, served, nil)
	agents.ServeOperators(mux, served)
	g := &service.Guard{Find: tokens.Operators(""), Page: func(http.ResponseWriter, *http.Request) (bool, *events.ServiceError) { return false, nil }}
	server := httptest.NewServer(g.Before(mux.ServeHTTP))
	defer server.Close()
	for _, r := range [][3]string{{"GET", "context", ""}, {"GET", "stats", ""}, {"POST", "compact", "{}"}} {
		in, err := http.NewRequestWithContext(t.Context(), r[0], server.URL+"/v1/sessions/default/s/"+r[1], strings.NewReader(r[2]))
		if err != nil {
			t.Fatal(err)
		}
		in.Header.Set("Authorization", "Bearer unknown") // the listener has no token
		out, err := server.Client().Do(in)
		if err = cmp.Or(err, out.Body.Close()); err != nil || out.StatusCode >= 300 {
			t.Fatalf("%v: %v, %d", r, err, out.StatusCode)
		}
	}
	env.Publish(events.KindRewind, "s", []byte(`{"id":"retention-default.s-1","steps":1}`)) // as a worker would name it
	env.Publish(events.KindForget, "s", []byte(`{}`))
	env.AwaitDecided()
	want := []string{
		"compact local default.s", "context local default.s", "context nats default.s", string(events.KindForget) + " nats default.s", "recall nats default.s", "rewind nats default.s",
	}
	if diff := gocmp.Diff(want, env.Audit(audit.Selection{})); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	if got := env.Audit(audit.Selection{Action: string(events.KindForget), Tenant: "default"}); len(got) != 1 {
		t.Errorf("selected %v", got)
	}
	s, err := env.JS.Stream(t.Context(), topology.AuditStream)
	if err != nil {
		t.Fatal(err)
	}
	if s.DeleteMsg(t.Context(), 1) == nil || s.Purge(t.Context()) == nil {
		t.Error("entries can be deleted")
	}
	w.Stop()
	env.Run("b", observe.Listener{})() // from the log alone
	if diff := gocmp.Diff(want, env.Audit(audit.Selection{})); diff != "" {
		t.Errorf("after the next owner (-want +got):\n%s", diff)
	}
}

// A worker creates the audit log at its start, before an operator needs it.
func TestAuditLogIsCreated(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	if err := retry.Every(10*time.Millisecond).Until(t.Context(), func() (bool, error) {
		_, err := env.JS.Stream(t.Context(), topology.AuditStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, nil
		}
		return true, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := audit.New(env.JS).Record(t.Context(), events.AuditEntry{Action: "new"}, ""); err == nil {
		t.Error("events.AuditActions lacks an action that is recorded")
	}
}

// Where a server has no room for it, the worker reports that at its start.
func TestNoRoomForAuditLog(t *testing.T) {
	t.Parallel()
	const each = 64 << 20
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxStore: 2*each + 4<<20}, topology.Config{MaxBytesLog: each, MaxBytesOutcomes: each})
	failed := make(chan error, 100)
	env.Run("a", observe.Listener{Retrying: func(e observe.Retrying) {
		if e.Step == "record" {
			failed <- e.Err
		}
	}})
	if err := <-failed; !jsapi.NoRoom(err) || !strings.Contains(err.Error(), "max_file_store") {
		t.Errorf("error is %v", err)
	}
}

// Without an entry no content goes out: where the audit log cannot be written, operators' reads are refused, and agents
// go on.
func TestAuditLogIsFull(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	if err := audit.New(env.JS).Record(t.Context(), events.AuditEntry{Action: "context"}, ""); err != nil {
		t.Fatal(err)
	}
	s, err := env.JS.Stream(t.Context(), topology.AuditStream)
	if err != nil {
		t.Fatal(err)
	}
	full := s.CachedInfo().Config
	full.MaxMsgSize = 1
	if _, err := env.JS.UpdateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, "s", workertest.Turn(1))
	env.Publish(events.KindCompact, "s", []byte(`{}`))
	env.AwaitDecided()
	if e := env.Request(events.SubjectContext, `{"session":"s"}`, &events.ContextResponse{}); e == nil || e.Code != events.CodeUnavailable {
		t.Errorf("%+v", e)
	}
	if e := env.Request(events.OfTenant(events.SubjectContext, "default"), `{"session":"s"}`, &events.ContextResponse{}); e != nil {
		t.Error(e)
	}
}

// An operator's token that receives events, retrieves an original or syncs is in the audit log; that of a tenant is not.
func TestOperatorsReadsAreRecorded(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	_, stored := e.Post("s", "turns", `{"turn":1,"messages":[{"role":"user","content":"text"}]}`)
	hash := events.ContentHash(stored.Seq, "text")
	for _, token := range []string{workertest.DefaultToken, workertest.OperatorToken} {
		if status, text := e.Do(token, "GET", "/v1/retrieve/"+hash, ""); status != 200 {
			t.Errorf("retrieve: %d %s", status, text)
		}
		if status, text := e.Do(token, "POST", "/v1/sessions/default/s/sync", `{"messages":[{"role":"user","content":"text"}],"dry_run":true}`); status != 200 {
			t.Errorf("sync: %d %s", status, text)
		}
		c := e.Open("GET /v1/sessions/default/s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n")
		if _, err := c.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff([]string{"events token default.s", "retrieve token default.s", "sync token default.s"}, env.Audit(audit.Selection{})); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}
