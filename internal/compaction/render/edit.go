package render

import (
	"bytes"
	"fmt"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// edited adds the message of entries from ≤ i < to with their edits, unless nothing is left of it.
func (r *renderer) edited(source *dialect.Message, from, to int) error {
	var err error
	if r.draft, err = r.read(source); err == nil && len(r.view.Renamed) > 0 {
		err = r.rename(from, to)
	}
	if err != nil {
		return err
	}
	m := &r.draft
	r.stamped = false
	var out message
	var answers, calls []message
	var blank []events.Edit
	split := false // a content that thinking led to
	r.parts = r.parts[:0]
	for i := from; i < to; i++ {
		e := &r.view.Entries[i]
		if err := holdsParts(m.Parts, e); err != nil {
			return err
		}
		if e.Flags.Has(measure.FlagEmpty) && (e.Kind != measure.KindWords || e.Flags.Has(measure.FlagThinking) || e.HostedHalf() > 0) {
			split = split || e.HostedHalf() > 0
			continue
		}
		out.holds(e)
		blank = r.blanks(blank, m, e)
		if err := r.edit(m, i); err != nil {
			return err
		}
		if e.Flags.Has(measure.FlagAnswer) {
			a, err := r.result(e, m)
			if err != nil {
				return err
			}
			answers = append(answers, a)
		}
		if e.Flags.Has(measure.FlagCall) {
			c, err := r.call(e, m)
			if err != nil {
				return err
			}
			calls = append(calls, c)
		}
	}
	if !slices.ContainsFunc(r.parts, hasContent) || split && !slices.ContainsFunc(r.parts, isAnswer) {
		r.changes = append(r.changes, blank[:min(len(blank), 1)]...) // the message
		return nil
	}
	out.from(&r.view.Entries[from])
	if r.dialect.Strict {
		r.changes = append(r.changes, blank...)
	}
	if r.dialect.Apart && out.results {
		return r.apart(m, out, answers, calls)
	}
	if out.raw, err = r.write(m, &out); err != nil {
		return err
	}
	out.untouched = !m.Edited && !slices.ContainsFunc(r.parts, isEdited) && bytes.Equal(m.Raw, source.Raw)
	if kept, err := r.withoutReasoning(&out); err != nil || !kept {
		return err
	}
	return r.add(out, answers, calls)
}

// apart adds the results and the other content of a message as two messages.
func (r *renderer) apart(m *dialect.Message, out message, answers, calls []message) (err error) {
	results, rest := *m, *m
	results.Role, out.role = dialect.RoleTool, measure.RoleTool
	all := slices.Clone(r.parts)
	r.parts = slices.DeleteFunc(slices.Clone(all), isNoResult)
	if out.raw, err = r.write(&results, &out); err != nil {
		return err
	}
	if err := r.add(out, answers, calls); err != nil {
		return err
	}
	r.parts = slices.DeleteFunc(all, func(p dialect.Part) bool { return !isNoResult(p) || !hasContent(p) })
	if len(r.parts) == 0 {
		return nil
	}
	r.note(events.OpSplit, &out)
	other := message{role: measure.RoleUser, first: out.first, last: out.last}
	if other.raw, err = r.write(&rest, &other); err != nil {
		return err
	}
	return r.add(other, nil, nil)
}

// blanks appends the blank texts of an entry, or the entry if all of it is blank.
func (r *renderer) blanks(out []events.Edit, m *dialect.Message, e *measure.Entry) []events.Edit {
	at := e.Position()
	if e.Parts == 0 {
		return append(out, events.Edit{Op: events.OpBlank, Position: at})
	}
	for _, p := range m.Parts[e.Part : e.Part+e.Parts] {
		if !hasContent(p) {
			out = append(out, events.Edit{Op: events.OpBlank, Position: at})
		}
		at.Part++
	}
	return out
}

func isNoResult(p dialect.Part) bool { return p.Kind != dialect.PartResult }

// write writes a message with its remaining parts.
func (r *renderer) write(m *dialect.Message, to *message) (codec.Raw, error) {
	if r.dialect.Strict { // blank texts are refused, and results come first
		r.parts = slices.DeleteFunc(r.parts, func(p dialect.Part) bool { return !hasContent(p) })
		for n := len(r.parts); n > 1 && n < len(m.Parts) && r.parts[n-1].Kind == dialect.PartThinking; n = len(r.parts) {
			r.parts = r.parts[:n-1] // the content that it led to is gone
		}
		if !slices.IsSortedFunc(r.parts, byRank) {
			slices.SortStableFunc(r.parts, byRank)
			m.Edited = true
			r.note(events.OpOrder, to)
		}
	}
	if m.Edited = m.Edited || len(r.parts) != len(m.Parts); !m.Edited && !slices.ContainsFunc(r.parts, isEdited) {
		return m.Raw, nil
	}
	m.Parts = r.parts
	if cap(r.room)-len(r.room) < len(m.Raw)+leastRoom {
		r.room = make(codec.Raw, 0, max(rooms*leastRoom, len(m.Raw)+leastRoom))
	}
	at := len(r.room)
	out, err := r.view.Format.Append(r.room, m)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	r.room = out
	return out[at:len(out):len(out)], nil
}

// Edited messages share blocks of memory: most are short, since their results were cleared. leastRoom is the
// usual growth of a message by an edit.
const (
	leastRoom = 1 << 10
	rooms     = 16
)

func isEdited(p dialect.Part) bool { return p.Edited }

// hasContent reports whether a part is more than white space.
func hasContent(p dialect.Part) bool { return p.Kind != dialect.PartText || !p.Blank() }

// isAnswer reports whether a part is content, other than thinking.
func isAnswer(p dialect.Part) bool { return hasContent(p) && p.Kind != dialect.PartThinking }

// edit carries out the op of entry i on its parts, and removes citations of results that are gone.
func (r *renderer) edit(m *dialect.Message, i int) error {
	n := len(r.parts)
	if err := r.editParts(m, i); err != nil || !r.view.Uncited[i] {
		return err
	}
	for k := n; k < len(r.parts); k++ {
		if p := &r.parts[k]; p.Hosted.Kind == dialect.HostedCites {
			p.Raw, m.Edited = dialect.WithoutCitations(p.Raw), true
		}
	}
	r.changes = append(r.changes, events.Edit{Op: events.OpUnbind, Position: r.view.Entries[i].Position()})
	return nil
}

func (r *renderer) editParts(m *dialect.Message, i int) error {
	e := &r.view.Entries[i]
	parts := m.Parts[e.Part : e.Part+e.Parts]
	if e.Op.Trims() {
		r.cut(parts, e)
		return nil
	}
	if e.Hosted() && e.Op != measure.OpNone {
		r.parts = append(r.parts, r.clearedRun(e, parts))
		return nil
	}
	n := len(r.parts)
	r.parts = append(r.parts, parts...)
	if r.view.Thinking.drops(e) {
		r.dropThinking(n)
	}
	switch e.Op {
	case measure.OpClear:
		if e.Kind == measure.KindWords {
			for i := range r.parts[n:] {
				r.parts[n+i] = clearedMedia(&r.parts[n+i])
			}
			return nil
		}
		r.parts[n].SetText(r.recall(e, parts[0].Text, measure.ClearText))
	case measure.OpClearOld:
		r.parts[n].SetText(r.recall(e, parts[0].Text, measure.ClearOldText))
	case measure.OpDeduplicate:
		path, err := r.path(&parts[0], i)
		if err != nil {
			return err
		}
		r.parts[n].SetText(r.recall(e, parts[0].Text, measure.DedupeHead, path, measure.DedupeTail))
	}
	return nil
}

// clearedRun is the placeholder of a run of calls of the provider's own tools and their results.
func (r *renderer) clearedRun(e *measure.Entry, parts []dialect.Part) dialect.Part {
	text, original := measure.ClearText, ""
	if e.Op == measure.OpClearOld {
		text = measure.ClearOldText
	}
	if r.view.Originals == ByHash {
		original = dialect.HostedText(parts)
	}
	return dialect.Part{Kind: dialect.PartText, Text: r.recall(e, original, text), Edited: true}
}

// clearedMedia is the placeholder of an image or document; any other part stays.
func clearedMedia(p *dialect.Part) dialect.Part {
	switch {
	case p.Kind != dialect.PartImage:
		return *p
	case p.Papers > 0:
		return dialect.Part{Kind: dialect.PartText, Text: measure.DocumentText, Edited: true}
	default:
		return dialect.Part{Kind: dialect.PartText, Text: measure.MediaText, Edited: true}
	}
}

// recall is the placeholder of a result, with the key to look its original up.
func (r *renderer) recall(e *measure.Entry, original string, placeholder ...string) string {
	if r.view.Originals == ByHash {
		return e.RecallByHash(original, placeholder...)
	}
	return e.Recall(placeholder...)
}

// path finds the file that the result at entry i read.
func (r *renderer) path(result *dialect.Part, i int) (string, error) {
	if r.pairs == nil {
		r.pairs = stage.Pair(r.view.Entries, r.view.Format)
	}
	if c := r.pairs.Other[i]; c >= 0 {
		call, err := r.part(&r.view.Entries[c])
		if err != nil {
			return "", err
		}
		if path := dialect.PathRead(call.Tool, call.Args); path != "" {
			return path, nil
		}
	}
	return dialect.PathInText(result.Text), nil
}
