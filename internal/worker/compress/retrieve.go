package compress

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// Retrieve returns the text behind a placeholder, of a tenant that the caller may use. The hash
// contains the sequence of the turn, and matches only that text. The address is that of the session.
func (s *Compressor) Retrieve(ctx context.Context, mayUse func(tenant string) bool, hash string) (_ *events.RetrieveResponse, a events.Address, _ error) {
	seq, err := events.SeqOfContent(hash)
	if err != nil {
		return nil, a, events.NewInvalid(events.CodeBadID, "hash", err.Error())
	}
	if seq == 0 {
		return nil, a, errNotFound
	}
	op, size := limit.Of(ctx), 0
	if err := op.Remember(ctx, service.TurnMemory); err != nil {
		return nil, a, fmt.Errorf("retrieve: %w", err)
	}
	stored, err := service.Reading(ctx, func() ([]stream.LogMessage, error) { return stream.GetLog(ctx, s.nc, []uint64{seq}) })
	for _, m := range stored {
		size += len(m.Data)
	}
	op.Shrink(int64(size) * limit.PerByte)
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return nil, a, errNotFound
	}
	if err != nil {
		return nil, a, fmt.Errorf("retrieve: %w", err)
	}
	at, err := events.ParseLog(stored[0].Subject)
	if err != nil || at.Kind != events.KindTurn || !mayUse(at.Address.Tenant) {
		return nil, a, errNotFound
	}
	if err := s.service.MayRecall(at.Address.Tenant); err != nil {
		return nil, a, err
	}
	if err := op.ComputeOver(ctx, size); err != nil {
		return nil, a, fmt.Errorf("retrieve: %w", err)
	}
	turn, err := events.DecodeTurn(stored[0].Data)
	if err != nil {
		return nil, a, errNotFound // the turn was refused or erased
	}
	text, tool, ok, err := original(ctx, turn.Messages, seq, hash)
	if err != nil {
		return nil, a, fmt.Errorf("retrieve: %w", err)
	}
	if !ok {
		return nil, a, errNotFound
	}
	return &events.RetrieveResponse{V: events.Version, Hash: hash, Original: text, Tool: tool, Session: at.Address.Session}, at.Address, nil
}

// original finds the text of a hash. Only the first turn names its dialect, so original tries all
// dialects.
func original(ctx context.Context, messages []codec.Raw, seq uint64, hash string) (text, tool string, ok bool, err error) {
	for _, f := range events.Formats() {
		for _, raw := range messages {
			if err := limit.Of(ctx).Yield(ctx); err != nil {
				return "", "", false, err
			}
			m, err := f.Read(raw)
			if err != nil {
				continue
			}
			var words strings.Builder
			for i := range m.Parts {
				p := &m.Parts[i]
				if end := dialect.HostedEnd(m.Parts, i); end > 0 {
					if text := dialect.HostedText(m.Parts[i:end]); events.ContentHash(seq, text) == hash {
						return text, "", true, nil
					}
				}
				if p.Kind != dialect.PartText && p.Kind != dialect.PartResult {
					continue
				}
				if events.ContentHash(seq, p.Text) == hash {
					return p.Text, p.Tool, true, nil
				}
				if p.Kind == dialect.PartText {
					words.WriteString(p.Text)
				}
			}
			if all := words.String(); events.ContentHash(seq, all) == hash {
				return all, "", true, nil
			}
		}
	}
	return "", "", false, nil
}
