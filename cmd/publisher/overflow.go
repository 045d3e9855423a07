package main

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"compactd/internal/events"
	"compactd/internal/ops/named"
)

type overflowCmd struct {
	Session    named.Session `required:"" env:"COMPACTD_SESSION" help:"Session whose call was refused."`
	Status     int64         `placeholder:"N" help:"HTTP status of the refusal."`
	Provider   string        `placeholder:"NAME" help:"Provider of the call, if it is not the session's."`
	Model      string        `placeholder:"NAME" help:"Model of the call, if it is not the session's."`
	Generation *int64        `placeholder:"N" help:"Compaction that the refused history had; the newest if absent."`
	File       string        `arg:"" optional:"" default:"-" help:"Answer of the provider, JSON or text; - is standard input."`
	waiting
}

// Run reports the refusal.
func (c *overflowCmd) Run(ctx context.Context, f *flags) error {
	refusal, err := c.refusal()
	if err != nil {
		return err
	}
	body := struct {
		V          int           `json:"v"`
		ID         string        `json:"id"`
		Error      events.Raw    `json:"error"`
		Status     int64         `json:"status,omitzero"`
		Model      *events.Model `json:"model,omitzero"`
		Generation *int64        `json:"generation,omitzero"`
	}{V: events.Version, ID: uuid.NewString(), Error: refusal, Status: c.Status, Generation: c.Generation}
	if c.Provider != "" || c.Model != "" {
		body.Model = &events.Model{Provider: c.Provider, Name: c.Model}
	}
	data, err := events.Marshal(body)
	if err != nil {
		return err
	}
	if _, err := events.DecodeOverflow(data); err != nil {
		return err
	}
	return f.request(ctx, events.KindOverflow, c.Session, body.ID, data, c.Timeout)
}

// refusal returns the answer of a provider as it is if it is JSON, else as a text.
func (c *overflowCmd) refusal() (events.Raw, error) {
	data, err := read(c.File, events.MaxOverflowBytes)
	if err != nil {
		return nil, err
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(data)), "\uFFFD")
	if raw := events.Raw(text); raw.IsValid() {
		return raw, nil
	}
	return events.Marshal(text)
}
