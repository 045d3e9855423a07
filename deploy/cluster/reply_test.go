package cluster_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// forged are reply subjects that would write where the tenant acme may not.
var forged = []string{
	"session.turn.globex.victim", "session.summary.globex.victim", "session.forget.globex.victim",
	"out.0.compacted.globex.victim", "out.0.mark", "out.1.job.normal.globex.victim", "log.0.turn.globex.victim",
	"$KV.LEASES.0", "$KV.MEMBERS.intruder", "compactd.canary", "$JS.API.STREAM.PURGE.SESSIONS", "_INBOX.victim",
}

// An answer of the server goes back to the account of the request, whatever reply subject
// was given: hostile actors, reply subject pointing at another tenant.
func TestReplySubject(t *testing.T) {
	f := newDirectory(t)
	url := f.single()
	w := startWorker(t, url, 1)
	operator := newJS(t, connectAs(t, url, "operator"))
	a := newAgent(t, url, "acme")
	a.publish(events.KindTurn, "s1", turn(1))
	w.awaitPublished()
	before, eavesdropper := subjects(t, operator), connectAs(t, url, "globex")
	received, err := eavesdropper.SubscribeSync("_INBOX.>")
	if err != nil {
		t.Fatal(err)
	}
	for i, reply := range forged {
		attack(t, a.conn, "session.turn.acme.s1", reply, turn(i+2))
		attack(t, a.conn, events.OfTenant(events.SubjectContext, "acme"), reply, `{"tenant":"acme","session":"s1"}`)
		attack(t, a.conn, events.OfTenant(events.SubjectRecall, "acme"), reply, `{"tenant":"acme","session":"s1","turn":1}`)
	}
	a.converse("s2") // behind the others
	w.awaitPublished()
	after := subjects(t, operator)
	maps.DeleteFunc(after, func(s string, _ uint64) bool {
		return strings.HasSuffix(s, ".acme.s1") || strings.HasSuffix(s, ".acme.s2") || strings.HasSuffix(s, ".mark") || strings.HasPrefix(s, "out.config.")
	})
	maps.DeleteFunc(before, func(s string, _ uint64) bool { _, ok := after[s]; return !ok })
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the streams hold what no client should have written:\n%s", diff)
	}
	if err := eavesdropper.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := received.Pending(); err != nil || n != 0 {
		t.Errorf("another tenant received %d answers, %v", n, err)
	}
	w.wantNoRefusal()
}

// In one account, whatever its users may publish, the same attack writes outcomes
// that are republished to another tenant. That is why each tenant has an account; and
// it is how the test above can fail.
func TestOneAccountDoesNotHold(t *testing.T) {
	f := newDirectory(t)
	o := f.options("single.conf")
	all := o.Accounts[slices.IndexFunc(o.Accounts, func(a *server.Account) bool { return a.Name == "COMPACTD" })]
	for _, u := range o.Users {
		if u.Username == "acme" {
			u.Account = all // permissions stay as they are
			u.Permissions.Publish.Allow = append(u.Permissions.Publish.Allow, "$JS.API.DIRECT.GET.SESSIONS.log.*.*.acme.*")
		}
	}
	url := run(t, o).ClientURL()
	w := startWorker(t, url, 1)
	operator := newJS(t, connectAs(t, url, "operator"))
	a := newAgent(t, url, "acme")
	a.publish(events.KindTurn, "s1", turn(1))
	w.awaitPublished()
	w.stop() // which would find its partition written by another
	attack(t, a.conn, "session.turn.acme.s1", "out.0.compacted.globex.ack", turn(2))
	attack(t, a.conn, "$JS.API.DIRECT.GET.SESSIONS."+w.stored("acme", "s1"), "out.0.compacted.globex.text", "")
	for _, s := range []string{"out.0.compacted.globex.ack", "out.0.compacted.globex.text"} {
		await(t, s+" to be written; is one account safe by now?", func() bool { return subjects(t, operator)[s] > 0 })
	}
}

// A tenant that may make consumers, if only for its own subjects, names the subject
// that they deliver to, in the account of the streams: what it wrote itself arrives in
// the agents of another tenant as an outcome. So no tenant may.
func TestConsumersOfTenantsDoNotHold(t *testing.T) {
	const api, outcome = "$JS.API.CONSUMER.CREATE.SESSIONS.*.log.*.*.acme.*", "session.compacted.globex.victim"
	f := newDirectory(t)
	f.replace("accounts.conf", `{ service: "session.turn.*.*" }`, `{ service: "session.turn.*.*" }, { service: "`+api+`" }`)
	f.replace("accounts.conf", `{ service: "$JS.API.INFO", accounts: [ MONITOR ] }`, `{ service: "$JS.API.INFO" }`)
	f.grant("$JS.API.INFO") // else the server itself answers, that the tenant has no JetStream
	f.grant(api)
	url := f.single()
	w := startWorker(t, url, 1)
	a := newAgent(t, url, "acme")
	victim, err := connectAs(t, url, "globex").SubscribeSync(outcome)
	if err != nil {
		t.Fatal(err)
	}
	a.publish(events.KindTurn, "s1", "whatever acme wants")
	at := w.stored("acme", "s1")
	m, err := a.conn.Request("$JS.API.CONSUMER.CREATE.SESSIONS.forge."+at, fmt.Appendf(nil,
		`{"stream_name":"SESSIONS","config":{"name":"forge","deliver_policy":"all","ack_policy":"none","filter_subject":%q,"deliver_subject":%q}}`, at, outcome), waitLimit)
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("create: %v, %s", err, m.Data)
	}
	if m, err = victim.NextMsg(waitLimit); err != nil || string(m.Data) != "whatever acme wants" {
		t.Errorf("nothing forged came, %v; are consumers of tenants safe by now?", err)
	}
}

// grant lets the tenant acme, in a way that the example does not, ask for something
// in the account of the streams.
func (f *directory) grant(subject string) {
	f.t.Helper()
	f.replace("tenants/acme.conf", "        publish {\n          allow: [", "        publish {\n          allow: [\n            \""+subject+"\"")
	f.replace("tenants/acme.conf", "  imports: [", "  imports: [\n    { service: { account: COMPACTD, subject: \""+subject+"\" } }")
}

// attack publishes with a reply subject, and returns when the server has taken it.
func attack(t *testing.T, nc *nats.Conn, subject, reply, payload string) {
	t.Helper()
	if err := nc.PublishRequest(subject, reply, []byte(payload)); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// subjects counts what every stream and bucket holds, by subject.
func subjects(t *testing.T, js jetstream.JetStream) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, name := range []string{topology.LogStream, topology.OutcomesStream, topology.CanaryStream, "KV_" + topology.LeasesBucket, "KV_" + topology.MembersBucket} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(out, info.State.Subjects)
	}
	return out
}

// replace edits one place of a configuration file.
func (f *directory) replace(file, old, with string) {
	f.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	if strings.Count(string(data), old) != 1 {
		f.t.Fatalf("%s does not have %q once", file, old)
	}
	f.write(file, []byte(strings.Replace(string(data), old, with, 1)))
}
