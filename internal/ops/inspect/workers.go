package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/coord"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/ops/units"
)

// workerWait bounds one request to a worker.
const workerWait = 10 * time.Second

// direct uses no proxy of the environment, which would get the token unencrypted.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// workers checks what the workers report over HTTP: their checkpoints, and who reaches their consoles.
func (d *doctor) workers(ctx context.Context, js jetstream.JetStream, s *topology.Streams) {
	if d.HTTP == "" {
		return
	}
	fleet, err := d.fleet(ctx)
	if err != nil {
		d.note("console", "give doctor the --http and the token of a running worker", "%v; checkpoints and addresses of consoles were not checked", err)
		return
	}
	if strange(ctx, js, fleet) {
		d.note("console", "give doctor the --http of a worker of this log", "the workers behind %s serve another log; checkpoints and addresses of consoles were not checked", d.HTTP)
		return
	}
	d.checkpoints(ctx, js, s, fleet)
	for _, w := range fleet.Workers {
		d.console(ctx, w)
	}
}

// strange reports whether a fleet belongs to another server: two fleets of one machine share its ports.
func strange(ctx context.Context, js jetstream.JetStream, fleet *events.FleetResponse) bool {
	all, err := coord.NewMembers(js, time.Second).All(ctx)
	return err == nil && !slices.ContainsFunc(fleet.Workers, func(w events.FleetWorker) bool {
		return slices.ContainsFunc(all, func(m coord.Member) bool { return m.Owner == w.Owner })
	})
}

// fleet is the answer of a worker about all of them.
func (d *doctor) fleet(ctx context.Context) (*events.FleetResponse, error) {
	status, body, err := getFleet(ctx, d.HTTP, d.Token)
	if err != nil {
		return nil, fmt.Errorf("no worker answers at %s", d.HTTP)
	}
	var out events.FleetResponse
	if status == http.StatusUnauthorized {
		return nil, fmt.Errorf("the worker at %s requires its token", d.HTTP)
	}
	if status != http.StatusOK || json.Unmarshal(body, &out) != nil {
		return nil, fmt.Errorf("the worker at %s answers with status %d", d.HTTP, status)
	}
	return &out, nil
}

// getFleet requests the fleet of the worker at an address.
func getFleet(ctx context.Context, addr, token string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, workerWait)
	defer cancel()
	return Get(ctx, "http://"+addr+"/v1/fleet", token)
}

// Get sends a request to a worker, with a token unless that is "".
func Get(ctx context.Context, url, token string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := direct.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	return answer.StatusCode, body, err
}

// checkpoints looks for partitions that have decided events ten minutes ago, and written no checkpoint since.
func (d *doctor) checkpoints(ctx context.Context, js jetstream.JetStream, s *topology.Streams, fleet *events.FleetResponse) {
	var newest time.Time
	for _, p := range fleet.Partitions {
		if !p.Served {
			continue
		}
		at := time.UnixMilli(max(p.Checkpoint, p.Acquired))
		if p.Checkpoint > 0 && at.After(newest) {
			newest = at
		}
		if d.Now().Sub(at) < longCheckpoint {
			continue
		}
		before, err := stream.LastUntil(ctx, js, topology.LogStream, at)
		if err != nil {
			d.problem("checkpoint", "", "%v", err)
			return
		}
		if since, found := d.decidedAfter(ctx, js, s, int(p.Partition), before); found && since > longCheckpoint {
			d.problem("checkpoint", "look for errors of the disk in the log of its worker", "partition %d: %s has written none since events of %s ago, and decides them again when it starts", p.Partition, p.Owner, units.Span(since))
			return
		}
	}
	if newest.IsZero() {
		d.ok("checkpoint", "none was due since the workers started")
		return
	}
	age := max(0, d.Now().Sub(newest)).Truncate(time.Second)
	d.ok("checkpoint", "the last one was %s ago", units.Span(age))
	d.figures(Figures{AgeSeconds: int64(age.Seconds())})
}

// console checks who reaches the console of a worker. From this machine its address may not be
// reachable, which is no finding.
func (d *doctor) console(ctx context.Context, w events.FleetWorker) {
	host, port, err := net.SplitHostPort(w.HTTP)
	if err != nil {
		return // off, or a worker that did not answer
	}
	if ip := net.ParseIP(host); host == "localhost" || ip.IsLoopback() {
		d.ok("console", "%s: only programs of its machine reach it", w.HTTP)
		return
	} else if host == "" || ip.IsUnspecified() {
		host, _, _ = net.SplitHostPort(d.HTTP)
	}
	if status, _, err := getFleet(ctx, net.JoinHostPort(host, port), ""); err == nil && status == http.StatusOK {
		d.problem("console", "bind --http to loopback, or let only those with the token through", "%s: anyone who reaches it reads and changes all sessions: it answers without a token", w.HTTP)
		return
	}
	d.note("console", "put TLS in front of it, or bind --http to loopback", "%s: other machines reach it, and its token is sent unencrypted", w.HTTP)
}
