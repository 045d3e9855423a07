package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/ops/diff"
)

// change is what a compaction of a session changed: its history as of the generation
// before and as of this one, which had so many messages; 0 leaves the turns since in
// both. Nil where the session is not known.
func change(ctx context.Context, nc *nats.Conn, a events.Address, generation int64, messages int) (*diff.Change, error) {
	var sides [2]*events.ContextResponse
	for i, g := range []int64{generation - 1, generation} {
		h, err := history(ctx, nc, events.ContextRequest{V: events.Version, Tenant: a.Tenant, Session: a.Session, Generation: &g})
		if err != nil || !h.Known {
			return nil, err
		}
		sides[i] = h
	}
	out := &diff.Change{
		Count: diff.Estimate(sides[1].Format), Recall: fmt.Sprintf("publisher recall --session %s --turn N prints those of a turn.", a.Session),
	}
	for i, into := range []*[]events.Message{&out.Before, &out.After} {
		if len(sides[i].Messages) == 0 {
			continue
		}
		all, err := sides[i].Format.ReadAll(sides[i].Messages)
		if err != nil {
			return nil, fmt.Errorf("read the messages: %w", err)
		}
		*into = all
	}
	if since := len(out.After) - messages; messages > 0 && since > 0 && since < len(out.Before) {
		out.Before, out.After = out.Before[:len(out.Before)-since], out.After[:messages]
	}
	return out, nil
}

// because says why and how a history was compacted.
func because(reason events.Reason, stages []events.Stage) string {
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = string(s)
	}
	text := "for " + strings.ReplaceAll(string(reason), "_", " ")
	if len(names) > 0 {
		text += ", by " + strings.Join(names, ", ")
	}
	return text
}
