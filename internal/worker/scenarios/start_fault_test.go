//go:build faults

package scenarios_test

import (
	"fmt"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// Workers that are started together on an empty server all become ready, whatever disk space
// the server has (P18).
func TestFaultStartTogether(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t)
	starts, failed := 0, 0
	for _, room := range []int64{10e9, 50e9, 200e9} {
		for _, workers := range []int{3, 3, 3, 8} {
			t.Run(fmt.Sprintf("%d on %d GB", workers, room/1e9), func(t *testing.T) {
				s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1", MaxStore: room})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Stop)
				var started []*process
				for range workers {
					p := &process{t: t, bin: bin, data: t.TempDir(), args: []string{"--nats", s.ClientURL(), "--http", "off"}}
					t.Cleanup(p.kill)
					p.start()
					started = append(started, p)
				}
				for _, p := range started {
					starts++
					if err := p.awaitReadyOrEnd(); err != nil {
						failed++
						t.Error(err)
					}
				}
				_, js := workertest.Dial(t, s.ClientURL())
				found, err := topology.Describe(t.Context(), js)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("bounds are %d and %d", found.Log.MaxBytes, found.Outcomes.MaxBytes)
			})
		}
	}
	figures.Print(t, "P18", "starts", starts, "failed", failed)
}
