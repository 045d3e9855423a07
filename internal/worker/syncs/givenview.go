package syncs

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"compactd/internal/align"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// givenView identifies a view of an earlier answer. It holds no message: no share of the worker's memory covers
// whole histories, and a cached message would outlive its erasure.
type givenView struct {
	align.View
	made []madeMessage
}

// madeMessage is the digest of a message that compactd made or changed. of is the message of the session that
// it replaces, or zero if it replaces no message or several.
type madeMessage struct {
	digest events.Digest
	of     events.Position
}

// Sizes in memory, in bytes; a test compares them with the types.
const (
	givenViewBytes   = 72
	madeMessageBytes = 40
)

func (v givenView) bytes() int { return givenViewBytes + cap(v.made)*madeMessageBytes }

// maxViewBytes limits the cached views.
const maxViewBytes = 4 << 20

// maxViews limits the generations with which a history is compared.
const maxViews = 4

// givenViews lists the views of earlier answers, the newest first.
func (r *request) givenViews(ctx context.Context, st *state) iter.Seq2[givenView, error] {
	return func(yield func(givenView, error) bool) {
		for gen := st.generation; gen > max(0, st.generation-maxViews); gen-- {
			var through, shows int64
			if err := r.inspect(ctx, func(l *compaction.Ledger) { through, shows = l.GenerationThrough(gen), l.GenerationShows(gen) }); err != nil {
				yield(givenView{}, err)
				return
			}
			for _, turn := range slices.Compact([]int64{shows, through}) { // an answer may end at any of the two
				v, ok, err := r.viewThrough(ctx, st, gen, turn)
				if (ok || err != nil) && !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
}

// viewThrough returns the view of a generation up to a turn. ok is false if it can no longer be
// rendered.
func (r *request) viewThrough(ctx context.Context, st *state, gen, through int64) (v givenView, ok bool, err error) {
	if through < 1 || int(through) > len(st.chain) {
		return v, false, nil
	}
	view, err := r.viewUnder(ctx, st, gen, through)
	if view == nil || err != nil {
		return v, false, err
	}
	turns := events.Expect{Turn: through, Digest: st.chain[through-1].Whole}
	key := viewKey{r.address, turns, formOf(r.seed, view, through)}
	if v, ok = r.views.get(key); ok {
		return v, true, nil
	}
	sourced, err := r.config.Texts.Sourced(ctx, r.address, view, func(measure.Seq) []dialect.Message { return nil })
	if err != nil {
		return v, false, nil //nolint:nilerr // its texts are gone, or no answer gave it
	}
	messages := make([]codec.Raw, len(sourced))
	for i := range sourced {
		messages[i] = sourced[i].Raw
		if !sourced[i].Untouched {
			v.made = r.appendMade(v.made, &sourced[i])
		}
	}
	v.View = align.NewView(r.format, messages, int(through))
	r.views.put(key, v)
	return v, true, nil
}

// appendMade appends a message that compactd made or changed: as it was recorded, and as it was sent.
func (r *request) appendMade(made []madeMessage, m *render.Sourced) []madeMessage {
	of := m.First
	if of != m.Last {
		of = events.Position{}
	}
	recorded, sent := r.format.DigestOf([]codec.Raw{m.Raw}), r.format.DigestOf([]codec.Raw{r.format.Sendable(m.Raw)})
	made = append(made, madeMessage{recorded, of})
	if sent != recorded {
		made = append(made, madeMessage{sent, of})
	}
	return made
}

// viewKey identifies a view of the first turns of a session by all that its rendering depends on. So a history is
// compared with the same view whether it is cached or not: also after a new model, prompt or policy, and in a
// session that ended and began again.
type viewKey struct {
	events.Address
	turns events.Expect
	form  uint64 // see formOf
}

// formOf returns a hash of a view of the first turns. The sequences in its entries identify the texts.
func formOf(seed maphash.Seed, v *render.View, turns int64) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range v.Entries {
		maphash.WriteComparable(&h, v.Entries[i])
	}
	rest := *v
	rest.Entries, rest.Thinking.Kept = nil, slices.Clone(v.Thinking.Kept)
	for i := range rest.Thinking.Kept { // later turns are not in the view
		k := &rest.Thinking.Kept[i]
		k.From, k.To = min(k.From, uint32(turns)+1), min(k.To, uint32(turns))
	}
	rest.Thinking.Kept = slices.DeleteFunc(rest.Thinking.Kept, func(k render.Turns) bool { return k.From > k.To })
	_, _ = fmt.Fprintf(&h, "%#v", rest)
	return h.Sum64()
}
