package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// View is an effective history in entries, ready to be rendered.
type View struct {
	Format          events.Format
	PlaceholderRole events.Role     // of summaries and truncation notices, see [measure.Custom]; "" is the user
	Entries         []measure.Entry // not to be changed
}

// Seqs lists the turns whose text Render needs, in order, each once.
func (v *View) Seqs() []measure.Seq {
	var out []measure.Seq
	for i := range v.Entries {
		if v.Entries[i].Kind != measure.KindTruncation {
			out = append(out, v.Entries[i].Seq)
		}
		if s := v.Entries[i].CallSeq(); v.Entries[i].Kind == measure.KindRestored && s != 0 {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// messages counts those that the entries belong to.
func (v *View) messages() (n int) {
	for i := range v.Entries {
		if v.Entries[i].Flags.Has(measure.FlagFirst) {
			n++
		}
	}
	return n
}

// Weight is how many bytes of memory the entries of the view take.
func (v *View) Weight() int { return len(v.Entries) * measure.HeldEntry }

// Texts returns the messages of the turn at a sequence of the log.
type Texts func(measure.Seq) ([]events.Message, error)

// Render writes the view in the session's own dialect, valid for its provider.
// Messages that no edit touches keep their bytes.
func Render(v *View, texts Texts) ([]events.Raw, error) {
	r := renderer{view: v, texts: texts, out: make([]events.Message, 0, v.messages())}
	for from := 0; from < len(v.Entries); {
		to := from + 1
		for to < len(v.Entries) && v.Entries[from].SameMessage(&v.Entries[to]) {
			to++
		}
		if err := r.message(from, to); err != nil {
			return nil, err
		}
		from = to
	}
	r.flush()
	return v.Format.WriteAll(slices.Insert(r.out, 0, r.system...))
}

// renderer assembles a history exchange by exchange: the assistant's messages,
// then the results of their calls, placeholders last, since without ids the
// order decides whose they are, then everything else up to the next assistant.
type renderer struct {
	view  *View
	texts Texts
	pairs *stage.Pairing // nil until a placeholder needs it

	parts []events.Part // of the message at hand

	system, out []events.Message
	open        int     // in out, where the open exchange begins
	ranks       []place // of its messages
}

// message adds the message of entries from ≤ i < to.
func (r *renderer) message(from, to int) error {
	first := &r.view.Entries[from]
	if first.Kind == measure.KindSummary {
		msgs, err := r.texts(first.Seq)
		if err != nil || len(msgs) != 1 {
			return fmt.Errorf("render summary at %d: %d messages: %w", first.Seq, len(msgs), err)
		}
		r.addPlaceholder(summarized(first, msgs[0]))
		return nil
	}
	if first.Kind == measure.KindTruncation {
		r.addPlaceholder(truncationMessage(first))
		return nil
	}
	if first.Kind == measure.KindRestored {
		return r.restored(first)
	}
	m, err := r.source(first)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if r.view.Entries[i].Op.Trims() { // in place
			m = m.Clone()
			break
		}
	}
	var answers, calls []events.Message
	r.parts = r.parts[:0]
	for i := from; i < to; i++ {
		e := &r.view.Entries[i]
		if e.Flags.Has(measure.FlagEmpty) && e.Kind == measure.KindResult {
			continue
		}
		if e.Op.Trims() {
			r.parts = append(r.parts, cutParts(&m, e)...)
		}
		for k := e.Part; k < e.Part+e.Parts && !e.Op.Trims(); k++ {
			p := m.Parts[k]
			if err := r.edit(&p, i); err != nil {
				return err
			}
			r.parts, m.Edited = append(r.parts, p), m.Edited || p.Edited
		}
		if e.Flags.Has(measure.FlagAnswer) {
			answers = append(answers, r.result(e, m, m.Parts[e.Part]))
		}
		if e.Flags.Has(measure.FlagCall) {
			calls = append(calls, r.call(e, m, m.Parts[e.Part]))
		}
	}
	if !slices.ContainsFunc(r.parts, hasContent) {
		return nil
	}
	if r.view.Format == events.Anthropic { // blank texts are refused, and results come first
		r.parts = slices.DeleteFunc(r.parts, func(p events.Part) bool { return !hasContent(p) })
		if !slices.IsSortedFunc(r.parts, byRank) {
			slices.SortStableFunc(r.parts, byRank)
			m.Edited = true
		}
	}
	if m.Edited || len(r.parts) != len(m.Parts) {
		m.Parts, m.Edited = slices.Clone(r.parts), true
	}
	r.add(m, answers, calls)
	return nil
}

// addPlaceholder adds the placeholder of hidden messages.
func (r *renderer) addPlaceholder(m events.Message) {
	m.As = r.view.PlaceholderRole
	r.put(rest, m)
}

// hasContent reports whether a part is more than white space.
func hasContent(p events.Part) bool { return p.Kind != events.PartText || !measure.Blank(&p) }

// source returns the message an entry was measured from.
func (r *renderer) source(e *measure.Entry) (events.Message, error) {
	msgs, err := r.texts(e.Seq)
	if err != nil {
		return events.Message{}, fmt.Errorf("render turn at %d: %w", e.Seq, err)
	}
	if int(e.Index) >= len(msgs) || int(e.Part+e.Parts) > len(msgs[e.Index].Parts) {
		return events.Message{}, fmt.Errorf("render turn at %d: it has no part %d of message %d", e.Seq, e.Part, e.Index)
	}
	return msgs[e.Index], nil
}

// edit carries out the op of entry i on a part.
func (r *renderer) edit(p *events.Part, i int) error {
	e := &r.view.Entries[i]
	switch e.Op {
	case measure.OpClear:
		p.SetText(e.Recall(measure.ClearText))
	case measure.OpClearOld:
		p.SetText(e.Recall(measure.ClearOldText))
	case measure.OpDeduplicate:
		path, err := r.path(*p, i)
		if err != nil {
			return err
		}
		p.SetText(e.Recall(measure.DedupeHead + path + measure.DedupeTail))
	}
	return nil
}

// path finds the file that the result at entry i read.
func (r *renderer) path(result events.Part, i int) (string, error) {
	if r.pairs == nil {
		r.pairs = stage.Pair(r.view.Entries, r.view.Format)
	}
	c := r.pairs.Other[i]
	if c < 0 {
		return measure.PathInText(result.Text), nil
	}
	call := &r.view.Entries[c]
	m, err := r.source(call)
	if err != nil {
		return "", err
	}
	p := m.Parts[call.Part]
	if path, _, ok := measure.PathRead(p.Tool, p.Args); ok {
		return path, nil
	}
	return measure.PathInText(result.Text), nil
}

// result is the placeholder for the result of a call that has none.
func (r *renderer) result(e *measure.Entry, source events.Message, call events.Part) events.Message {
	role := events.RoleTool
	if r.view.Format == events.Anthropic {
		role = events.RoleUser
	}
	p := events.Part{Kind: events.PartResult, CallID: call.CallID, Tool: call.Tool, Text: measure.AnswerText}
	return events.Message{Role: role, Parts: []events.Part{p}, ID: syntheticID("repair-result-", e), Timestamp: source.TimestampOf()}
}

// unknownTool is the name of a tool whose result does not name it.
const unknownTool = "unknown"

// call is the placeholder call for a result that has none.
func (r *renderer) call(e *measure.Entry, source events.Message, result events.Part) events.Message {
	tool := headUnits(result.Tool, measure.MaxToolUnits)
	m := textMessage(events.RoleAssistant, measure.CallTextHead+cmp.Or(tool, unknownTool)+measure.CallTextTail)
	if r.view.Format != events.NeuroLink { // others refuse a call without a name
		tool = cmp.Or(tool, unknownTool)
	}
	m.ID, m.Timestamp = syntheticID("repair-call-", e), source.TimestampOf()
	m.Parts = append(m.Parts, events.Part{Kind: events.PartCall, CallID: result.CallID, Tool: tool})
	return m
}

func textMessage(role events.Role, text string) events.Message {
	return events.Message{Role: role, Parts: []events.Part{{Kind: events.PartText, Text: text}}}
}

// headUnits returns the longest head of s with at most n UTF-16 units.
func headUnits(s string, n int) string {
	for i, c := range s {
		if n -= len(string(c)); n < 0 { // bytes, which are never fewer than units
			return s[:i]
		}
	}
	return strings.Clone(s)
}
