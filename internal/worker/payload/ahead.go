package payload

import (
	"context"
	"maps"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Ahead is texts that were read before they are rendered, of many sessions at once.
type Ahead struct{ texts map[compaction.Seq]entry }

// Wanted is a view that will be rendered.
type Wanted struct {
	Address events.Address
	View    *compaction.View
}

// ReadAhead reads the texts of views in one sweep over the log, instead of one sweep for each:
// see [stream.Texts]. It holds limit bytes of them at most, beside those of one view. It omits views
// from the end while the texts exceed the limit, by their size or by the ledgers' estimate. An
// omitted view is read when it is rendered, and fails there. Texts of an earlier call are used, and
// dropped.
func (t *Renderer) ReadAhead(ctx context.Context, before *Ahead, wanted []Wanted, limit int) *Ahead {
	t.used.Store(true)
	p := aheadPlan{renderer: t, before: before, have: map[compaction.Seq]entry{}, planned: map[compaction.Seq]bool{}, left: limit}
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
				p.have[compaction.Seq(m.Seq)] = e
			}
		}
	}
	return &Ahead{p.have}
}

// aheadPlan is what is to be read ahead.
type aheadPlan struct {
	renderer *Renderer
	before   *Ahead
	have     map[compaction.Seq]entry // read before: the cache may drop it meanwhile
	planned  map[compaction.Seq]bool
	left     int        // bytes that may be read
	expected int        // bytes that will be, about
	groups   [][]uint64 // to read, of one view each
	owners   []events.Address
}

// add plans a view, unless it is one too many.
func (p *aheadPlan) add(w Wanted, first bool) bool {
	seqs := w.View.Seqs()
	var group []uint64
	hits, held, expected := map[compaction.Seq]entry{}, 0, 0
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
func (a *Ahead) at(seq compaction.Seq) (hit entry, ok bool) {
	if a != nil {
		hit, ok = a.texts[seq]
	}
	return hit, ok
}

// Has reports whether everything that a view needs was read ahead.
func (a *Ahead) Has(v *compaction.View) bool {
	for _, seq := range v.Seqs() {
		if _, ok := a.at(seq); !ok {
			return false
		}
	}
	return true
}

// Bytes is what the texts take in memory, about.
func (a *Ahead) Bytes() (n int) {
	if a != nil {
		for _, e := range a.texts {
			n += len(e.data) + heldText
		}
	}
	return n
}

// heldText is what a text takes in memory beside its bytes, about.
const heldText = 256
