package payload

import (
	"context"
	"maps"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
)

// Ahead holds texts of many sessions, read before they are rendered.
type Ahead struct{ texts map[measure.Seq]entry }

// Wanted is a view that will be rendered.
type Wanted struct {
	Address events.Address
	View    *render.View
}

// ReadAhead reads the texts of views in one sweep over the log, instead of one sweep for each:
// see [stream.Texts]. It holds at most limit bytes of them, or those of one view. It omits views
// from the end while the texts exceed the limit, by their size or by the ledgers' estimate. The texts
// of an omitted view are read when it is rendered, and errors are reported there. ReadAhead uses texts of
// before, and then drops before.
func (t *Renderer) ReadAhead(ctx context.Context, before *Ahead, wanted []Wanted, limit int) *Ahead {
	t.used.Store(true)
	p := aheadPlan{renderer: t, before: before, have: map[measure.Seq]entry{}, planned: map[measure.Seq]bool{}, left: limit}
	for i, w := range wanted {
		if !p.add(w, i == 0) {
			break
		}
	}
	if before != nil {
		before.texts = nil
	}
	stored, err := t.Texts.GetGroups(ctx, p.groups, p.left)
	if err != nil {
		return &Ahead{p.have}
	}
	for k, group := range stored {
		for _, m := range group {
			if e, err := t.keep(p.owners[k], m); err == nil {
				p.have[measure.Seq(m.Seq)] = e
			}
		}
	}
	return &Ahead{p.have}
}

// aheadPlan collects the texts to read ahead.
type aheadPlan struct {
	renderer *Renderer
	before   *Ahead
	have     map[measure.Seq]entry // already read; kept here, since the cache may drop them
	planned  map[measure.Seq]bool
	left     int        // bytes that may still be read
	expected int        // estimated bytes to read
	groups   [][]uint64 // sequences to read, one group per view
	owners   []events.Address
}

// add plans a view. It returns false if the view exceeds the limit.
func (p *aheadPlan) add(w Wanted, first bool) bool {
	seqs := w.View.Seqs()
	var group []uint64
	hits, held, expected := map[measure.Seq]entry{}, 0, 0
	for _, seq := range seqs {
		if p.planned[seq] {
			continue
		}
		if hit, ok := p.renderer.at(p.before, w.Address, seq); ok {
			hits[seq] = hit
			held += len(hit.data) + heldText
		} else {
			group = append(group, uint64(seq))
		}
	}
	if len(group) > 0 {
		expected = w.View.TextBytes() * len(group) / len(seqs)
	}
	if p.expected+expected > p.left-held && !first {
		return false
	}
	p.left -= held
	p.expected += expected
	maps.Copy(p.have, hits)
	for _, seq := range seqs {
		p.planned[seq] = true
	}
	if len(group) > 0 {
		p.groups, p.owners = append(p.groups, group), append(p.owners, w.Address)
	}
	return true
}

// at returns a text that was read ahead.
func (a *Ahead) at(seq measure.Seq) (hit entry, ok bool) {
	if a != nil {
		hit, ok = a.texts[seq]
	}
	return hit, ok
}

// Has reports whether all texts of a view were read ahead.
func (a *Ahead) Has(v *render.View) bool {
	for _, seq := range v.Seqs() {
		if _, ok := a.at(seq); !ok {
			return false
		}
	}
	return true
}

// Bytes estimates the memory of the texts.
func (a *Ahead) Bytes() (n int) {
	if a != nil {
		for _, e := range a.texts {
			n += len(e.data) + heldText
		}
	}
	return n
}

// heldText estimates the memory of a text without its bytes.
const heldText = 256
