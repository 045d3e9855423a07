package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"compactd/internal/transcript"
	"compactd/internal/whatif"
	"compactd/internal/worker"
)

// errInvalid is a defect.
var errInvalid = errors.New("some histories are not valid for their provider, which is a defect; please report it with the session")

// playFiles compares policies on transcripts.
func (c *replayCmd) playFiles(ctx context.Context, f *flags) error {
	r, err := c.report(f)
	if err != nil {
		return err
	}
	for _, path := range c.Files {
		sessions, err := transcript.Read(path)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			if err := r.Add(ctx, whatif.FromTranscript(s)); err != nil {
				return err
			}
		}
	}
	return c.print(r)
}

// playLog compares policies with each other, and with what was told.
func (c *replayCmd) playLog(ctx context.Context, f *flags, nc *nats.Conn) error {
	r, err := c.report(f, whatif.Policy{Name: whatif.Recorded})
	if err != nil {
		return err
	}
	known, err := counters()
	if err != nil {
		return err
	}
	err = worker.Recordings(ctx, nc, c.span, known, func(rec worker.Recording, why error) error {
		if why != nil {
			r.LeaveOut(why.Error())
			return nil
		}
		s := &whatif.Session{Address: rec.Address, Told: true}
		for _, e := range rec.Events {
			s.Events = append(s.Events, whatif.Event(e))
		}
		return r.Add(ctx, s)
	})
	if err != nil {
		return err
	}
	return c.print(r)
}

// report has a column for each policy that is named, behind some others.
func (c *replayCmd) report(f *flags, columns ...whatif.Policy) (*whatif.Report, error) {
	for _, name := range f.Policy {
		s, err := f.load(name)
		if err != nil {
			return nil, fmt.Errorf("--policy %s: %w", name, err)
		}
		columns = append(columns, whatif.Policy{Name: name, Config: s.Config})
	}
	return whatif.NewReport(columns, whatif.Options{Delay: c.SummaryDelay}), nil
}

func (c *replayCmd) print(r *whatif.Report) error {
	if err := show(c.JSON, r); err != nil {
		return err
	}
	if r.Invalid() > 0 {
		return errInvalid
	}
	return nil
}
