package workers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// Request returns the state of all workers, or nil where the server keeps this user from it.
func Request(ctx context.Context, nc *nats.Conn) (*events.FleetResponse, error) {
	denied, err := request.Denied(nc, events.SubjectFleet)
	if err != nil || denied {
		return nil, err
	}
	out := &events.FleetResponse{}
	if err := request.Send(ctx, nc, events.SubjectFleet, events.FleetRequest{V: events.Version}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Write prints the address, the load and the partitions of each worker. CPU is the mean since its start.
func Write(w io.Writer, fleet *events.FleetResponse) error {
	t := term.NewTable(w, term.Column{Name: "WORKER", Min: 10}, term.Column{Name: "CONSOLE"}, term.Column{Name: "STATUS"}, term.Column{Name: "PARTITIONS", Right: true},
		term.Column{Name: "CPU", Right: true}, term.Column{Name: "MEMORY", Right: true}, term.Column{Name: "LAG", Right: true},
		term.Column{Name: "COMMITS", Right: true, Drop: 1}, term.Column{Name: "VERSION", Drop: 2})
	for _, x := range fleet.Workers {
		name := cmp.Or(x.Owner, x.Name) // as partitions name their owner
		if !x.Answered {
			t.Row(name, "-", "no answer", x.Partitions)
			continue
		}
		commits := cmp.Or(x.Commits, &events.FleetCommits{}).Count
		cpu := float64(x.CPU) / float64(max(fleet.Time-x.Started, 1))
		t.Row(name, cmp.Or(x.HTTP, "off"), x.Status, x.Partitions, fmt.Sprintf("%.2f of %d", cpu, x.CPUs), units.Bytes(x.Memory),
			units.Span(time.Duration(x.Lag)*time.Millisecond), fmt.Sprintf("%d/min", commits), x.Version)
	}
	return t.Flush()
}
