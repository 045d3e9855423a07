package summarize

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/events"
	"compactd/internal/summarize/sanitize"
)

// jobWork bounds the work of redaction for one job, in bytes that are looked at:
// ordinary text has each of its bytes looked at 10 times, so it is enough for 400 MB.
const jobWork = 4 << 30

// cleaner redacts the texts of one job, until its context ends or its work is used up.
type cleaner struct {
	ctx      context.Context //nolint:containedctx // of one call of legible
	redactor sanitize.Redactor
	err      error
}

func (c *cleaner) redact(s string) string {
	if c.err != nil {
		return ""
	}
	s, c.err = c.redactor.Redact(c.ctx, s)
	return s
}

// legible returns an input as summarizers read it: its texts without data URLs,
// without what nobody sees, without secrets, and none longer than maxScanned. It
// shares no parts with in. The error is that of ctx, which is looked at within texts
// too, or [ErrTooMuch].
func legible(ctx context.Context, in Input) (Input, error) {
	c := &cleaner{ctx: ctx, redactor: sanitize.Redactor{Work: jobWork}}
	in.Messages = slices.Clone(in.Messages)
	for i := range in.Messages {
		if err := ctx.Err(); err != nil {
			return in, err
		}
		m := &in.Messages[i]
		m.Parts = slices.Clone(m.Parts)
		for k := range m.Parts {
			p := &m.Parts[k]
			p.Text = c.clear(p.Text)
			p.Args = c.clearArgs(p.Args)
			p.Tool = c.clear(p.Tool)
		}
		c.joints(m.Parts)
		if c.err != nil {
			return in, c.err
		}
	}
	if in.Previous != nil {
		in.Previous = sealed(in.Previous)
	}
	in.Focus = c.clear(in.Focus)
	return in, cmp.Or(c.err, ctx.Err())
}

// jointBytes is how much of each text is looked at for a secret that goes on in the
// next block of a message.
const jointBytes = 2 << 10

// joints takes out secrets that begin in one block of a message and end in the next.
func (c *cleaner) joints(parts []events.Part) {
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

// clear returns a text as it is read.
func (c *cleaner) clear(s string) string {
	return c.redact(cutMiddle(withoutData(seen(s)), maxScanned))
}

// seen removes terminal sequences and the characters that nobody sees, and that
// could hide a word from whoever looks for it. White space stays.
func seen(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == escape:
			i += escapeLen(s[i:])
			continue
		case !unseen(r):
			b.WriteString(s[i : i+w])
		}
		i += w
	}
	return b.String()
}

func unseen(r rune) bool { return hidden(r) && !unicode.IsSpace(r) }

// clearArgs keeps arguments a JSON value, and their members where it can.
func (c *cleaner) clearArgs(args events.Raw) events.Raw {
	if len(args) > maxScanned {
		return c.clearMembers(args)
	}
	s := string(args)
	out := c.redact(withoutData(seen(s)))
	switch {
	case out == s:
		return args
	case isJSON(events.Raw(out)):
		return events.Raw(out)
	default: // what was taken out reached over the end of a string
		return c.clearMembers(args)
	}
}

// clearMembers looks at the members one by one.
func (c *cleaner) clearMembers(args events.Raw) events.Raw {
	out := events.Raw(`{`)
	for name, v := range events.Members(args) {
		if len(v) > maxScanned {
			s, _ := events.Text(v)
			v = quote(c.clear(s))
		} else if s := c.redact(withoutData(seen(string(v)))); s != string(v) {
			if v = events.Raw(s); !isJSON(v) {
				v = quote(secretPlace)
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(c.redact(name))...), ':'), v...)
	}
	return append(out, '}')
}

func isJSON(raw events.Raw) bool {
	var v events.Raw
	return events.Unmarshal(raw, &v) == nil
}

func quote(s string) events.Raw {
	raw, err := events.Marshal(s)
	if err != nil {
		return events.Raw(`""`) // broken UTF-8
	}
	return raw
}

// sealed returns a summary without secrets, and without what acts where it is shown, as
// it may be stored.
func sealed(s *events.Summary) *events.Summary {
	out := *s
	out.Text = Redact(inert(s.Text))
	out.Record = slices.Clone(s.Record)
	for i := range out.Record {
		out.Record[i].Text = Redact(inert(out.Record[i].Text))
	}
	return &out
}

// cutMiddle keeps a third of n bytes from the head of a text and the rest from
// its end, where outputs say how they came out, and tells how much is left out.
func cutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	first := head(s, n/3)
	last := s[len(s)-(n-n/3):]
	for len(last) > 0 && !utf8.RuneStart(last[0]) {
		last = last[1:]
	}
	return first + "\n[" + strconv.Itoa(len(s)-len(first)-len(last)) + " bytes left out]\n" + last
}
