package summarize

import (
	"cmp"
	"context"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

// jobWork bounds the work of redaction for one job, in bytes that are looked at:
// ordinary text has each of its bytes looked at 10 times, so it is enough for 400 MB.
const jobWork = 4 << 30

// inputSanitizer redacts the texts of one job, until its context ends or its work is used up.
type inputSanitizer struct {
	ctx      context.Context //nolint:containedctx // of one call of SanitizeInput
	redactor sanitize.Redactor
	err      error
}

func (c *inputSanitizer) redact(s string) string {
	if c.err != nil {
		return ""
	}
	s, c.err = c.redactor.Redact(c.ctx, s)
	return s
}

// SanitizeInput returns an input as summarizers read it: its texts without data URLs,
// without invisible characters, without secrets, and none longer than [snippet.MaxScanned]. It
// shares no parts with in. The error is that of ctx, which is looked at within texts
// too, or [ErrTooMuch].
func SanitizeInput(ctx context.Context, in Input) (Input, error) {
	c := &inputSanitizer{ctx: ctx, redactor: sanitize.Redactor{Work: jobWork}}
	in.Messages = slices.Clone(in.Messages)
	question := ""
	for i := range in.Messages {
		if err := ctx.Err(); err != nil {
			return in, err
		}
		m := &in.Messages[i]
		m.Parts = slices.Clone(m.Parts)
		for k := range m.Parts {
			p := &m.Parts[k]
			p.Text = c.sanitizeText(p.Text)
			if m.Role == dialect.RoleUser && p.Kind == dialect.PartText {
				p.Text = c.answer(question, p.Text)
			}
			p.Args = c.sanitizeArgs(p.Args)
			p.Tool = c.sanitizeText(p.Tool)
		}
		c.redactJoints(m.Parts)
		if c.err != nil {
			return in, c.err
		}
		question = lastText(m)
	}
	if in.Previous != nil {
		in.Previous = RedactSummary(in.Previous)
	}
	in.Focus = c.sanitizeText(in.Focus)
	c.redactKnown(&in)
	return in, cmp.Or(c.err, ctx.Err())
}

// answer redacts the answer to a question for a secret.
func (c *inputSanitizer) answer(question, text string) string {
	if c.err != nil || question == "" {
		return text
	}
	text, c.err = c.redactor.Answer(c.ctx, question, text)
	return text
}

// lastText is what an assistant ends a message with.
func lastText(m *Message) string {
	if n := len(m.Parts); m.Role == dialect.RoleAssistant && n > 0 && m.Parts[n-1].Kind == dialect.PartText {
		return m.Parts[n-1].Text
	}
	return ""
}

// redactKnown removes secrets found in one text from all the others. The parts and the previous summary are copies
// already.
func (c *inputSanitizer) redactKnown(in *Input) {
	known := c.redactor.Known()
	if known == nil {
		return
	}
	for i := range in.Messages {
		parts := in.Messages[i].Parts
		for k := range parts {
			p := &parts[k]
			p.Text, p.Tool = known.Replace(p.Text), known.Replace(p.Tool)
			if args := known.Replace(string(p.Args)); args != string(p.Args) {
				if p.Args = codec.Raw(args); !isJSON(p.Args) {
					p.Args = codec.Quote(sanitize.SecretPlace)
				}
			}
		}
	}
	in.Focus = known.Replace(in.Focus)
	if in.Previous != nil {
		in.Previous = mapTexts(in.Previous, known.Replace)
	}
}

// jointBytes is how much of each text is looked at for a secret that goes on in the
// next block of a message.
const jointBytes = 2 << 10

// redactJoints takes out secrets that begin in one block of a message and end in the next.
func (c *inputSanitizer) redactJoints(parts []dialect.Part) {
	for i := 1; i < len(parts) && c.err == nil; i++ {
		a, b := &parts[i-1], &parts[i]
		if a.Text == "" || b.Text == "" {
			continue
		}
		left, right := a.Text[max(0, len(a.Text)-jointBytes):], b.Text[:min(len(b.Text), jointBytes)]
		first, second, err := c.redactor.Joint(c.ctx, left, right)
		if c.err = err; err == nil && (first != left || second != right) {
			a.Text, b.Text = a.Text[:len(a.Text)-len(left)]+first, second+b.Text[len(right):]
		}
	}
}

// sanitizeText returns a text as it is read.
func (c *inputSanitizer) sanitizeText(s string) string {
	return c.redact(snippet.CutMiddle(snippet.WithoutData(snippet.StripInvisible(s)), snippet.MaxScanned))
}

// sanitizeArgs keeps arguments a JSON value, and their members where it can.
func (c *inputSanitizer) sanitizeArgs(args codec.Raw) codec.Raw {
	if len(args) > snippet.MaxScanned {
		return c.sanitizeMembers(args)
	}
	s := string(args)
	out := c.redact(snippet.WithoutData(snippet.StripInvisible(s)))
	switch {
	case out == s:
		return args
	case isJSON(codec.Raw(out)):
		return codec.Raw(out)
	default: // what was taken out reached over the end of a string
		return c.sanitizeMembers(args)
	}
}

// sanitizeMembers looks at the members one by one.
func (c *inputSanitizer) sanitizeMembers(args codec.Raw) codec.Raw {
	out := codec.Raw(`{`)
	for name, v := range codec.Members(args) {
		if len(v) > snippet.MaxScanned {
			s, _ := codec.Text(v)
			v = codec.Quote(c.sanitizeText(s))
		} else if s := c.redact(snippet.WithoutData(snippet.StripInvisible(string(v)))); s != string(v) {
			if v = codec.Raw(s); !isJSON(v) {
				v = codec.Quote(sanitize.SecretPlace)
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, codec.Quote(c.redact(name))...), ':'), v...)
	}
	return append(out, '}')
}

func isJSON(raw codec.Raw) bool {
	var v codec.Raw
	return codec.Unmarshal(raw, &v) == nil
}

// RedactSummary returns a summary without secrets, and without what acts where it is shown, as
// it may be stored.
func RedactSummary(s *events.Summary) *events.Summary {
	return mapTexts(s, func(s string) string { return sanitize.Redact(snippet.Inert(s)) })
}

// mapTexts returns a summary with its texts changed.
func mapTexts(s *events.Summary, change func(string) string) *events.Summary {
	out := *s
	out.Text, out.Record, out.Spare = change(s.Text), slices.Clone(s.Record), slices.Clone(s.Spare)
	for i := range out.Record {
		out.Record[i].Text = change(out.Record[i].Text)
	}
	for i := range out.Spare {
		out.Spare[i].Text = change(out.Spare[i].Text)
	}
	return &out
}
