package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"compactd/internal/events"
)

type endCmd struct {
	Session string        `required:"" env:"COMPACTD_SESSION" help:"Session that is over."`
	Wait    time.Duration `default:"5s" placeholder:"TIME" help:"How long to wait until a worker has dropped it, or refused that (${default}); 0 does not wait."`
}

// Help has examples.
func (*endCmd) Help() string {
	return `Examples:
  publisher end --session s1`
}

// Run says that the session is over. Nothing answers that but a refusal.
func (c *endCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: f.Tenant, Session: c.Session}
	if err := a.Validate(); err != nil {
		return err
	}
	id := uuid.NewString()
	data, err := events.Marshal(events.Header{V: events.Version, ID: id})
	if err != nil {
		return err
	}
	f.spared = toFollow
	w, ack, err := f.publish(ctx, events.KindEnd, a, id, data)
	if err != nil {
		return err
	}
	defer w.nc.Close()
	w.fate = fate{Seq: ack.Sequence, ID: id, State: stateStored, Note: "the session is over when a worker comes to it"}
	if c.Wait > 0 {
		if err := w.await(ctx, c.Wait); err != nil {
			return err
		}
	}
	return f.show(w.fate, w.fate.write)
}
