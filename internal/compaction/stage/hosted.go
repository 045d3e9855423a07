package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
)

// A call of the provider's own tool has its result in the same message or, if the response paused, in the
// assistant's next one. Only results of the agent's tools may be between them. See [dialect.HostedEnd].

// split lists the halves of such pairs whose other half is missing or out of reach although the conversation
// went on. The provider refuses them.
func (d *Draft) split() (out []int) {
	if !d.format.Dialect().HostedPairs || d.pairing().halves == 0 {
		return nil
	}
	other, none := d.pairing().Other, len(d.entries)
	b := behind{none, none, none, none, none, false}
	for i := len(d.entries) - 1; i >= 0; i-- {
		e := &d.entries[i]
		if e.Flags.Has(measure.FlagEmpty) {
			continue
		}
		switch pair := int(other[i]); e.HostedHalf() {
		case dialect.HostedResult:
			if pair < 0 {
				out = append(out, i)
			}
		case dialect.HostedCall:
			if pair >= 0 && min(b.prompt, b.end) < pair {
				out = append(out, i, pair)
			} else if pair < 0 && min(b.prompt, b.answer) < none {
				out = append(out, i)
			}
		}
		b.add(i, e)
	}
	slices.Sort(out)
	return out
}

// behind has the positions of the nearest entries after another one: of the assistant, of anyone else, of
// words of a user or the system, which may be rendered as a user's, and of the assistant's answer to the
// nearest results, with its end.
type behind struct {
	assistant, rest, prompt, answer, end int
	results                              bool // the nearest are results of the agent's tools
}

// add moves on to the rendered entry at i.
func (b *behind) add(i int, e *measure.Entry) {
	switch {
	case e.Role == measure.RoleAssistant:
		b.assistant, b.results = i, false
		return
	case e.Kind != measure.KindResult:
		b.prompt, b.results = i, false
	case !b.results:
		b.answer, b.end, b.results = b.assistant, b.rest, true
	}
	b.rest = i
}

// dropSplit removes such halves from the history.
func (d *Draft) dropSplit() {
	for _, i := range d.split() {
		d.drop(i)
	}
}

// Uncited are positions of words that lose their citations of results of the provider's own tools: the
// provider refuses a citation of a result that is not in the history.
type Uncited map[int]bool

// Uncite finds them. A citation does not name its result: it is kept if all results of its exchange are
// there, or nothing of the history before it is gone. In a turn after through one result is enough: an agent
// appends such turns to the history that it got.
func Uncite(entries []measure.Entry, through int64) (out Uncited) {
	var here, all cited
	for i := range entries {
		e := &entries[i]
		switch half := e.HostedHalf(); {
		case e.Flags.Has(measure.FlagEmpty):
		case e.Kind >= measure.KindTruncation:
			here, all.gone = cited{}, true
		case e.Role == measure.RoleUser && e.Kind == measure.KindWords:
			here = cited{}
		case e.Hosted() && e.Op == measure.OpNone, half == dialect.HostedResult:
			here.there, all.there = true, true
		case e.Hosted():
			here.gone, all.gone = true, true
		case e.Cites() && !here.whole() && !all.whole() && (!here.there || e.Position().Turn <= through):
			if out == nil {
				out = Uncited{}
			}
			out[i] = true
		}
	}
	return out
}

// cited reports whether citable results are in view, and whether some are gone.
type cited struct{ there, gone bool }

func (c cited) whole() bool { return c.there && !c.gone }
