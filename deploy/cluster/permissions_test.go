package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/nats-io/nats.go"
)

// Each user may publish and subscribe what it needs and nothing else: hostile actors,
// forged session.compacted and session.summary, erasure, other tenants. The table is
// testdata/permissions.txt.
func TestPermissions(t *testing.T) {
	script := "testdata/permissions.txt"
	absolute := absolutePath(t, script)
	f := newDirectory(t)
	url := f.single()
	datadriven.RunTest(t, absolute, func(t *testing.T, d *datadriven.TestData) string {
		nc := connectAs(t, url, d.Cmd)
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			verb, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
			fmt.Fprintf(&out, "%-7s %s %s\n", answer(t, nc, verb, subject), verb, subject)
		}
		return out.String()
	})
}

// answer reports whether the server lets a connection publish or subscribe. It answers a
// ping after it has refused what came before.
func answer(t *testing.T, nc *nats.Conn, verb, subject string) string {
	t.Helper()
	var err error
	refusal := fmt.Sprintf("Publish to %q", subject)
	if verb == "publish" {
		err = nc.Publish(subject, nil)
	} else {
		refusal = fmt.Sprintf("Subscription to %q", subject)
		_, err = nc.SubscribeSync(subject)
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatalf("%s %s: %v", verb, subject, err)
	}
	if last := nc.LastError(); last != nil && strings.Contains(strings.ToLower(last.Error()), strings.ToLower(refusal)) {
		return "refused"
	}
	return "allowed"
}
