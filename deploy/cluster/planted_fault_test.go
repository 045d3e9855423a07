//go:build faults

package cluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/plant"
)

// plantedConn connects as a tenant that sends what it likes.
func plantedConn(t testing.TB, address, user string) *plant.Conn {
	t.Helper()
	pem, err := os.ReadFile("certs/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password(user))
	c, err := plant.Dial(u.String(), &tls.Config{RootCAs: roots, ServerName: u.Hostname()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// One tenant stores all that is known to look like the server's own, in every partition of
// three workers. Its events are rejected under their sequences, the sessions of another tenant
// go on as before, and neither these workers nor the next, which have nothing, end (P20).
func TestFaultPlanted(t *testing.T) {
	f := newDirectory(t)
	address := f.single()
	var crew []*aWorker
	for i := range 3 {
		crew = append(crew, startOwner(t, address, fmt.Sprintf("w%d", i), topology.Config{Partitions: 6, CreateBytes: 1 << 30}))
	}
	victim := newAgent(t, address, "acme")
	answers, err := victim.conn.SubscribeSync(events.Published(events.KindCompacted, events.Address{Tenant: "acme", Session: "*"}))
	if err != nil {
		t.Fatal(err)
	}
	const sessions = 24
	for i := range sessions {
		victim.publish(events.KindTurn, fmt.Sprintf("s%d", i), turn(1))
	}
	requests := 0
	// request gets an answer for a session, and returns how long that took.
	ask := func() time.Duration {
		requests++
		began := time.Now()
		victim.publish(events.KindCompact, fmt.Sprintf("s%d", requests%sessions), fmt.Sprintf(`{"v":1,"id":"c%d"}`, requests))
		if _, err := answers.NextMsg(time.Minute); err != nil {
			t.Fatalf("request %d has no answer: %v", requests, err)
		}
		return time.Since(began)
	}
	for range 2 * sessions { // until all is warm
		ask()
	}
	evil := plantedConn(t, address, "globex")
	planted, good := map[uint64]string{}, 0
	send := func(b plant.Block, body string) {
		seq, err := evil.Publish(fmt.Sprintf("session.turn.globex.s%d", len(planted)%sessions), b.Text, body)
		if errors.Is(err, plant.ErrDuplicate) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		if body == "" {
			planted[seq] = b.Name
		} else {
			good++
		}
	}
	// By turns, so that both see the same machine.
	var alone, beside []time.Duration
	blocks := plant.All()
	for round := range 7 {
		for i, b := range blocks {
			if (round+i/8)%2 == 0 {
				alone = append(alone, ask())
			} else {
				send(b, "")
				beside = append(beside, ask())
				send(b, "")
			}
		}
	}
	for i, b := range plant.Answers() { // the last ones of their partitions
		send(b, turn(i+1))
	}
	for _, w := range crew {
		w.awaitPublished()
	}
	for _, w := range crew {
		w.stop()
	}
	next := startOwner(t, address, "next", topology.Config{})
	for range sessions {
		ask()
	}
	next.awaitPublished()

	count := len(planted)
	err = stream.ReadStream(t.Context(), next.js, topology.OutcomesStream, "out.*.rejected.globex.*", 1, 0, func(m jetstream.Msg, _ uint64) error {
		var r events.Rejected
		err := codec.Unmarshal(m.Data(), &r)
		if r.Code == events.CodeBadJSON {
			delete(planted, r.Seq)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for seq, name := range planted {
		t.Errorf("event %d (%s) is not rejected", seq, name)
	}
	lost := 0
	for i := range sessions {
		var stats events.StatsResponse
		if code := victim.ask(events.OfTenant(events.SubjectStats, "acme"), fmt.Sprintf(`{"tenant":"acme","session":"s%d"}`, i), &stats); code != "" || !stats.Known {
			t.Errorf("session s%d of acme is lost: %q", i, code)
			lost++
		}
	}
	next.stop()
	victim.wantNoRefusal()
	ratio := float64(quantile(beside, 99)) / float64(quantile(alone, 99))
	t.Logf("an answer, p99: alone %s, beside the attack %s", quantile(alone, 99), quantile(beside, 99))
	figures.Print(t, "P20", "planted", count, "valid", good, "unrejected", len(planted), "requests", requests, "stalls", 0, "lost", lost,
		"exits", 0, "p99_ratio", fmt.Sprintf("%.2f", ratio))
}

func quantile(d []time.Duration, percent int) time.Duration {
	slices.Sort(d)
	return d[len(d)*percent/100]
}
