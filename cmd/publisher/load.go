package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/ops/replay"
	"compactd/internal/ops/term"
)

type loadCmd struct {
	Sessions int           `default:"20" help:"Agents at once (${default})."`
	Turns    int           `default:"50" help:"Turns of each; 0 goes on until --duration is over (${default})."`
	Speed    float64       `default:"100" help:"Times faster than real agents, whose pauses are 1.65 s in the median and 131 s at the 99th percentile; 0 does not wait at all (${default})."`
	Rate     float64       `default:"0" placeholder:"N" help:"Most turns a second of all agents; 0 sets no bound (${default})."`
	Duration time.Duration `default:"0s" placeholder:"TIME" help:"Stop publishing after this time; 0 sets no bound (${default})."`
	Tenants  int           `default:"1" help:"Number of tenants that share the sessions, called TENANT-1, TENANT-2 and so on (${default})."`
	Window   int64         `default:"32000" placeholder:"TOKENS" help:"Context window of the agents' model: a small one is compacted often (${default})."`
	Format   string        `enum:"openai,anthropic,neurolink,openai-responses,gemini,bedrock,ai-sdk" default:"anthropic" placeholder:"DIALECT" help:"Dialect of the published messages (openai|anthropic|neurolink|openai-responses|gemini|bedrock|ai-sdk, default ${default})."`
	Seed     uint64        `default:"1" help:"Seed of the agents' messages (${default})."`
	Name     string        `placeholder:"NAME" help:"Name of the run, and prefix of its sessions' names; generated if absent."`
}

// minWindow is the smallest in which a turn fits as a rule, in tokens.
const minWindow = 2_000

// Validate finds wrong usage that kong cannot find.
func (c *loadCmd) Validate() error {
	switch {
	case c.Sessions < 1 || c.Tenants < 1:
		return errors.New("--sessions and --tenants must be 1 or more")
	case c.Turns < 0 || c.Speed < 0 || c.Rate < 0 || c.Duration < 0:
		return errors.New("--turns, --speed, --rate and --duration must be 0 or more")
	case c.Turns == 0 && c.Duration == 0:
		return errors.New("--turns 0 needs --duration, or the load would never end")
	case c.Window < minWindow:
		return errors.New("--window must be 2000 tokens or more")
	}
	return nil
}

// Run publishes the load and prints the report.
func (c *loadCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	name := cmp.Or(c.Name, "load-"+uuid.NewString()[:8])
	turns := cmp.Or(c.Sessions*c.Turns, -1) // -1: the bar shows how many there were
	bar := term.NewBar(os.Stderr, "turns", int64(turns), true)
	defer bar.Done()
	report, err := replay.Load(ctx, replay.LoadConfig{
		Conn: nc, Tenant: f.Tenant, Tenants: c.Tenants, Name: name, Sessions: c.Sessions, Turns: c.Turns, Speed: c.Speed, Rate: c.Rate,
		Duration: c.Duration, Window: c.Window, Format: events.Format(c.Format), Seed: c.Seed, Progress: func() { bar.Add(1) }, Waiting: f.waiting(bar, toStore),
	})
	bar.Done()
	if err != nil {
		return err
	}
	return cmp.Or(f.show(report, report.WriteTable), report.Problem())
}
