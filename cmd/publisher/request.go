package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

// waiting describes the wait of a command for a worker's answer.
type waiting struct {
	Timeout time.Duration `default:"5m" help:"How long to wait for the answer (${default}); 0 does not wait."`
}

type compactCmd struct {
	Session named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to compact."`
	Policy  string        `placeholder:"JSON" help:"Fields of the policy for this call."`
	Focus   string        `arg:"" optional:"" help:"Content that the summary must preserve."`
	waiting
}

// Run requests a compaction.
func (c *compactCmd) Run(ctx context.Context, f *flags) error {
	body := events.Compact{ID: uuid.NewString(), Focus: c.Focus}
	if c.Policy != "" {
		body.Policy = codec.Raw(c.Policy)
	}
	if _, err := codec.Marshal(body); err != nil {
		return events.NewInvalid(events.CodeBadPolicy, "policy", "is not one JSON object")
	}
	return answered(ctx, f, events.KindCompact, c.Session, body.ID, body, events.Decode[events.Compact], c.Timeout)
}

type rewindCmd struct {
	Session    named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to rewind."`
	Generation *int64        `placeholder:"N" xor:"to" help:"Generation to return to; 0 is the history as it was published."`
	Steps      int64         `placeholder:"N" xor:"to" help:"Compactions to undo (1)."`
	waiting
}

// Run requests a rewind.
func (c *rewindCmd) Run(ctx context.Context, f *flags) error {
	body := events.Rewind{ID: uuid.NewString(), Generation: c.Generation, Steps: c.Steps}
	if c.Generation == nil && c.Steps == 0 {
		body.Steps = 1
	}
	return answered(ctx, f, events.KindRewind, c.Session, body.ID, body, events.Decode[events.Rewind], c.Timeout)
}

type endCmd struct {
	Session named.Session `required:"" env:"COMPACTD_SESSION" help:"Session that is over."`
	Wait    time.Duration `default:"5s" placeholder:"TIME" help:"How long to wait until a worker has ended it, or refused to (${default}); 0 does not wait."`
}

// Run ends the session. Only a refusal leads to an outcome.
func (c *endCmd) Run(ctx context.Context, f *flags) error {
	id := uuid.NewString()
	data, err := codec.Marshal(events.Header{V: events.Version, ID: id})
	if err != nil {
		return err
	}
	f.optional = optionalToAwait
	w, err := f.publish(ctx, events.KindEnd, c.Session, id, data)
	if err != nil {
		return err
	}
	w.result.Note = "the session is over when a worker applies it"
	return f.printResult(ctx, w, c.Wait)
}

// answered publishes an event, if a worker can decode it, and prints the outcome that answers it.
func answered[T any](
	ctx context.Context, f *flags, k events.Kind, session named.Session, id string, body any, decode func([]byte) (*T, error), timeout time.Duration,
) error {
	data, err := codec.Marshal(body)
	if err != nil {
		return err
	}
	if _, err := decode(data); err != nil {
		return err
	}
	w, err := f.publish(ctx, k, session, id, data)
	if err != nil {
		return err
	}
	if timeout == 0 {
		return f.show(w.result, w.result.write)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errNoAnswer)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-w.received:
			if answered, err := f.printAnswer(m, w.result.Seq); answered || err != nil {
				return err
			}
		}
	}
}

// printAnswer prints an outcome if it answers the event at a sequence.
func (f *flags) printAnswer(m *nats.Msg, seq uint64) (answered bool, err error) {
	body, err := decodeOutcome(m)
	if err != nil || events.Answers(body).Seq != seq {
		return false, err
	}
	r, refused := body.(*events.Rejected)
	switch {
	case f.JSON:
		err = term.JSON(codec.Raw(m.Data))
	case !refused:
		err = writeAnswer(os.Stdout, body)
	}
	if refused && err == nil {
		err = &refusedError{r}
	}
	return true, err
}

// writeAnswer prints an outcome in one line, and a hint where nothing was done.
func writeAnswer(w io.Writer, body any) error {
	b, ok := body.(*events.Compacted)
	switch {
	case !ok:
		_, err := fmt.Fprintln(w, tableRowOf(body).note)
		return err
	case !b.Compacted:
		known := events.Codes[b.Code]
		_, err := fmt.Fprintf(w, "not compacted: %s, %d of %d tokens; the target is %d\n%s\nhint: %s\n", b.Code, b.TokensBefore, b.AvailableInput, b.TargetTokens, known.Meaning, known.Hint)
		return err
	case b.RewoundTo != nil:
		_, err := fmt.Fprintf(w, "rewound to generation %d: generation %d through turn %d, %d → %d tokens\n", *b.RewoundTo, b.Generation, b.Through.Turn, b.TokensBefore, b.TokensAfter)
		return err
	default:
		_, err := fmt.Fprintf(w, "compacted: generation %d through turn %d, %d → %d tokens by %v\n", b.Generation, b.Through.Turn, b.TokensBefore, b.TokensAfter, b.StagesUsed)
		return err
	}
}

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
		Error      codec.Raw     `json:"error"`
		Status     int64         `json:"status,omitzero"`
		Model      *events.Model `json:"model,omitzero"`
		Generation *int64        `json:"generation,omitzero"`
	}{V: events.Version, ID: uuid.NewString(), Error: refusal, Status: c.Status, Generation: c.Generation}
	if c.Provider != "" || c.Model != "" {
		body.Model = &events.Model{Provider: c.Provider, Name: c.Model}
	}
	return answered(ctx, f, events.KindOverflow, c.Session, body.ID, body, events.DecodeOverflow, c.Timeout)
}

// refusal returns the answer of a provider as it is if it is JSON, else as a text.
func (c *overflowCmd) refusal() (codec.Raw, error) {
	data, err := read(c.File, events.MaxOverflowBytes)
	if err != nil {
		return nil, err
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(data)), "\uFFFD")
	if raw := codec.Raw(text); raw.IsValid() {
		return raw, nil
	}
	return codec.Marshal(text)
}
