package service_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// offer sends a request as another worker does that offers it in parts, of a tenant. Parts are given out only of one
// that is complete.
func offer(env *workertest.Env, tenant, request string, complete bool) (reply *nats.Subscription) {
	env.T.Helper()
	nc := env.Connect()
	a := events.Address{Tenant: tenant, Session: "s"}
	place, inbox := nc.NewInbox(), nc.NewInbox()
	_, err := nc.Subscribe(place, func(m *nats.Msg) {
		if complete {
			_ = m.Respond([]byte(request))
		}
	})
	if err == nil {
		reply, err = nc.SubscribeSync(inbox)
	}
	if err == nil {
		err = nc.PublishMsg(&nats.Msg{
			Subject: events.OwnerSubject(env.Streams.Partitions.Of(a), "check"), Reply: inbox,
			Header: nats.Header{
				"Compactd-Parts": {place}, "Compactd-Size": {strconv.Itoa(len(request))},
				"Compactd-Tenant": {tenant}, "Compactd-Session": {"s"},
			},
		})
	}
	if err != nil {
		env.T.Fatal(err)
	}
	return reply
}

// Requests that other workers forward count for their tenants, also before they are decoded.
func TestForwardedRequestsOfTenants(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	l := env.Limit(limit.Config{})
	env.Run("a", observe.Listener{})
	for range 20 {
		offer(env, "hostile", strings.Repeat("x", 1000), false)
	}
	l.Await(t, func() bool { return l.Held(limit.Fetches) >= 3 })
	for tenant, code := range map[string]events.Code{"good": "", "other": events.CodeForbidden} { // the second one's header is not that of its request
		m, err := offer(env, tenant, `{"tenant":"good","session":"s"}`, true).NextMsg(workertest.WaitLimit)
		if err != nil {
			t.Fatal(err)
		}
		var e events.ServiceError
		if err := codec.Unmarshal(m.Data, &e); err != nil && code != "" || e.Code != code {
			t.Errorf("%s: %.200s %v", tenant, m.Data, err)
		}
	}
	if held := l.Held(limit.Fetches); held < 3 {
		t.Errorf("%d requests of the other tenant are under way", held)
	}
}

// Requests that workers forward to each other name their tenant and session.
func TestForwardedRequestsName(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	for _, name := range []string{"a", "b"} {
		env.Run(name, observe.Listener{})
	}
	seen, err := env.Conn.SubscribeSync("compactd.p.*.check")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // until one is of a session that the other worker serves, or will soon
		var out events.CheckResponse
		if e := env.Request(events.SubjectCheck, fmt.Sprintf(`{"tenant":"acme","session":"s%d"}`, i), &out); e != nil && e.Code != events.CodeUnavailable {
			t.Fatalf("%+v", e)
		}
		if n, _, _ := seen.Pending(); n > 0 {
			break
		}
	}
	m, err := seen.NextMsg(workertest.WaitLimit)
	if err != nil {
		t.Fatal(err)
	}
	if session := m.Header.Get("Compactd-Session"); m.Header.Get("Compactd-Tenant") != "acme" || !strings.Contains(string(m.Data), strconv.Quote(session)) {
		t.Errorf("%v of %s", m.Header, m.Data)
	}
}
