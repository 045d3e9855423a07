package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events"
)

// View is an effective history in entries, ready to be rendered.
type View struct {
	Format          events.Format
	placeholderRole events.Role // who tells summaries and markers, see [Custom]
	entries         []Entry
}

// NewView returns the view of entries. A role other than "" sends placeholders of hidden
// messages in the dialect of the reference.
func NewView(f events.Format, placeholderRole events.Role, entries []Entry) *View {
	return &View{f, placeholderRole, entries}
}

// Seqs lists the turns whose text Render needs, in order, each once.
func (v *View) Seqs() []Seq {
	var out []Seq
	for i := range v.entries {
		if v.entries[i].Kind != KindTruncation {
			out = append(out, v.entries[i].Seq)
		}
		if s := v.entries[i].callSeq(); v.entries[i].Kind == KindRestored && s != 0 {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// messages counts those that the entries belong to.
func (v *View) messages() (n int) {
	for i := range v.entries {
		if v.entries[i].Flags.has(FlagFirst) {
			n++
		}
	}
	return n
}

// Texts returns the messages of the turn at a sequence of the log.
type Texts func(Seq) ([]events.Message, error)

// Render writes the view in the session's own dialect, valid for its provider.
// Messages that no edit touches keep their bytes.
func Render(v *View, texts Texts) ([]events.Raw, error) {
	r := renderer{view: v, texts: texts, out: make([]events.Message, 0, v.messages())}
	for from := 0; from < len(v.entries); {
		to := from + 1
		for to < len(v.entries) && v.entries[from].sameMessage(&v.entries[to]) {
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
// order tells whose they are, then everything else up to the next assistant.
type renderer struct {
	view  *View
	texts Texts
	pairs *pairing // nil until a placeholder asks for it

	parts []events.Part // of the message at hand

	system, out []events.Message
	open        int     // in out, where the open exchange begins
	ranks       []place // of its messages
}

// message adds the message of entries from ≤ i < to.
func (r *renderer) message(from, to int) error {
	first := &r.view.entries[from]
	if first.Kind == KindSummary {
		msgs, err := r.texts(first.Seq)
		if err != nil || len(msgs) != 1 {
			return fmt.Errorf("render summary at %d: %d messages: %w", first.Seq, len(msgs), err)
		}
		r.addPlaceholder(summarized(first, msgs[0]))
		return nil
	}
	if first.Kind == KindTruncation {
		r.addPlaceholder(truncationMessage(first))
		return nil
	}
	if first.Kind == KindRestored {
		return r.restored(first)
	}
	m, err := r.source(first)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if r.view.entries[i].Op.trims() { // in place
			m = m.Clone()
			break
		}
	}
	var answers, calls []events.Message
	r.parts = r.parts[:0]
	for i := from; i < to; i++ {
		e := &r.view.entries[i]
		if e.Flags.has(FlagEmpty) && e.Kind == KindResult {
			continue
		}
		if e.Op.trims() {
			r.parts = append(r.parts, cutParts(&m, e)...)
		}
		for k := e.Part; k < e.Part+e.Parts && !e.Op.trims(); k++ {
			p := m.Parts[k]
			if err := r.edit(&p, i); err != nil {
				return err
			}
			r.parts, m.Edited = append(r.parts, p), m.Edited || p.Edited
		}
		if e.Flags.has(FlagAnswer) {
			answers = append(answers, r.result(e, m, m.Parts[e.Part]))
		}
		if e.Flags.has(FlagCall) {
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

// stand adds what stands for hidden messages.
func (r *renderer) addPlaceholder(m events.Message) {
	m.As = r.view.placeholderRole
	r.put(rest, m)
}

// speaks reports whether a part is more than white space.
func hasContent(p events.Part) bool { return p.Kind != events.PartText || !blank(&p) }

// source returns the message an entry was measured from.
func (r *renderer) source(e *Entry) (events.Message, error) {
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
	e := &r.view.entries[i]
	switch e.Op {
	case opClear:
		p.SetText(e.recall(ClearText))
	case opClearOld:
		p.SetText(e.recall(ClearOldText))
	case opDeduplicate:
		path, err := r.path(*p, i)
		if err != nil {
			return err
		}
		p.SetText(e.recall(dedupeHead + path + dedupeTail))
	}
	return nil
}

// path finds the file that the result at entry i read.
func (r *renderer) path(result events.Part, i int) (string, error) {
	if r.pairs == nil {
		r.pairs = pair(r.view.entries, r.view.Format)
	}
	c := r.pairs.other[i]
	if c < 0 {
		return pathInText(result.Text), nil
	}
	call := &r.view.entries[c]
	m, err := r.source(call)
	if err != nil {
		return "", err
	}
	p := m.Parts[call.Part]
	if path, _, ok := fileRead(p.Tool, p.Args); ok {
		return path, nil
	}
	return pathInText(result.Text), nil
}

// result is the placeholder for the result of a call that has none.
func (r *renderer) result(e *Entry, source events.Message, call events.Part) events.Message {
	role := events.RoleTool
	if r.view.Format == events.Anthropic {
		role = events.RoleUser
	}
	p := events.Part{Kind: events.PartResult, CallID: call.CallID, Tool: call.Tool, Text: AnswerText}
	return events.Message{Role: role, Parts: []events.Part{p}, ID: syntheticID("repair-result-", e), Timestamp: source.TimestampOf()}
}

// unknownTool stands for the name of a tool that a result does not tell.
const unknownTool = "unknown"

// call is the placeholder call for a result that has none.
func (r *renderer) call(e *Entry, source events.Message, result events.Part) events.Message {
	tool := headUnits(result.Tool, maxToolUnits)
	m := textMessage(events.RoleAssistant, callTextHead+cmp.Or(tool, unknownTool)+callTextTail)
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
