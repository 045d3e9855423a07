package compaction

import "compactd/internal/events"

// ReadPending measures what a request adds to a call, in the dialect of its
// session. Its error, an [events.Invalid], names the messages that have no shape
// of that dialect.
func (c *Config) ReadPending(in *events.CheckRequest, format events.Format) (Pending, error) {
	msgs, err := format.ReadNew(in.Messages)
	if err != nil {
		return Pending{}, err
	}
	by := meter{counter: c.counter}
	next := Pending{Model: in.Wanted(), Tokens: Tokens(in.Tokens), system: by.field(in.System), tools: by.field(in.Tools)}
	for i, m := range msgs {
		next.added = by.measure(next.added, m, Entry{Index: uint32(i)})
	}
	for _, a := range in.Attachments {
		next.attached = append(next.attached, File{Kind: a.Type, Bytes: a.Bytes})
	}
	return next, nil
}

// measured adds what [Config.ReadPending] has measured to a prompt.
func (l *Ledger) measured(p *Prompt, next *Pending) {
	r := &l.cache.rate
	if next.system != nil {
		p.System = r.sized(*next.system) + r.PerMessage
	}
	if next.tools != nil {
		p.Tools = CustomOf(l.cache.policy.Profile).tools(*r, *next.tools)
	}
	for i := range next.added {
		p.Current += r.Entry(&next.added[i])
	}
	if len(next.added) > 0 && l.entries.n == 0 {
		p.Current += r.PerConversation // the history brings it otherwise
	}
	p.Current += next.Tokens
	for _, f := range next.attached {
		p.Files += FileTokens(f.Kind, f.Bytes)
	}
}

// Attach says of each attachment what it costs, and whether it should be sent, given
// the budget of a call that sends them all: the smallest first, within the share
// that files may take of what is left (B15).
func (next *Pending) Attach(b *events.Budget) []events.AttachmentCost {
	left := Tokens(b.AvailableInput - b.EstimatedInput)
	out := make([]events.AttachmentCost, len(next.attached))
	for i, f := range next.attached {
		cost := FileTokens(f.Kind, f.Bytes)
		out[i].Tokens = int64(cost)
		left += cost
	}
	limits := DefaultFileLimits()
	fit, _ := limits.Choose(next.attached, left)
	sent := map[File]int{}
	for _, f := range fit {
		sent[f]++
	}
	for i, f := range next.attached {
		out[i].Send = sent[f] > 0
		sent[f]--
	}
	return out
}

// Through is the turn border up to which the ledger stands.
func (l *Ledger) Through() events.Through { return l.through() }
