package compaction

import "compactd/internal/compaction/measure"

// An answer is larger in the next prompt than what was published of it shows: thinking that its
// provider keeps, and that an agent publishes in part or not at all. The output of its usage,
// which was billed, has it.
// See docs/adr/0053.
const (
	// supposed is what an answer is supposed to hide, as a share of its estimate, with the weight of
	// supposedOf answers: of a model that hides its thinking, in a session that showed none.
	supposed   PPM    = 330_000
	supposedOf Tokens = 5
	// mostSupposed is the most that one answer adds to the mean: a few have most of all thinking,
	// and which of the next ones will is not known.
	mostSupposed Tokens = 2_000
	// stayTrust is how many hidden tokens are taken to stay before calls show whether they do.
	stayTrust Tokens = 1_000
	// hiddenMemory is how many hidden tokens, and hiddenAnswers how many answers, are learned from
	// before what was learned counts half.
	hiddenMemory  Tokens = 200_000
	hiddenAnswers int64  = 128
)

// hidden is what the answers of a session hide.
type hidden struct {
	// Billed is what the answer of the last anchor was billed beyond our estimate of it, and Added
	// what the correction has for it and for the answers since.
	Billed Tokens `json:"billed,omitzero"`
	Added  Tokens `json:"added,omitzero"`

	// Stayed of so many billed tokens were in the next prompt.
	Stayed Tokens `json:"stayed,omitzero"`
	Of     Tokens `json:"of,omitzero"`

	// Sum is of what the last answers hid.
	Sum     Tokens `json:"sum,omitzero"`
	Answers int64  `json:"answers,omitzero"`

	Shown bool `json:"shown,omitzero"` // an answer showed its thinking
}

// staying is the part of so many billed tokens that the next prompt has.
func (h *hidden) staying(billed Tokens) Tokens {
	return (stayTrust + h.Stayed) * billed / (stayTrust + h.Of)
}

// mean is what an answer of an estimated size without a usage is taken to hide.
func (h *hidden) mean(size Tokens, hides bool) Tokens {
	sum := h.Sum
	if hides && !h.Shown {
		sum += supposed.Share(size) * supposedOf
	}
	return sum / (supposedOf + Tokens(h.Answers))
}

// learn takes what an input grew by beyond our estimate of so many tokens, and returns the part of
// it that its answers hid.
func (h *hidden) learn(beyond, grown Tokens) Tokens {
	others := h.Added - h.staying(h.Billed)
	if h.Billed >= grown/4 { // of less, the error of our estimate is as large
		h.Stayed += min(max(beyond-others, 0), h.Billed)
		h.Of += h.Billed
	}
	if h.Of > hiddenMemory {
		h.Stayed, h.Of = h.Stayed/2, h.Of/2
	}
	stayed := h.staying(h.Billed)
	h.Sum += min(stayed, mostSupposed)
	if h.Answers++; h.Answers > hiddenAnswers {
		h.Sum, h.Answers = h.Sum/2, h.Answers/2
	}
	return stayed + others
}

// counted notes that an input was counted, with all that was hidden in it.
func (h *hidden) counted() { h.Billed, h.Added = 0, 0 }

// answers adds what the answers of a turn hide to the correction, from its entry at a position
// on, and returns how much that is. The first of them is the one that its usage was billed for.
func (l *Ledger) answers(t *Turn, from int, billed bool) (added Tokens) {
	if !l.cache.rate.Classes {
		return 0
	}
	billed = billed && from < len(t.entries) && t.entries[from].Role == measure.RoleAssistant
	for from < len(t.entries) {
		size, next := l.answerFrom(t, from)
		switch {
		case next == from:
			next++
		case billed:
			added += l.usage.bill(min(Tokens(t.usage.Output), l.cache.window/2), size)
			billed = false
		default:
			added += l.usage.Hidden.mean(size, l.cache.hides)
		}
		from = next
	}
	l.usage.correct(added, l.prompt().Total())
	return added
}

// answerFrom is the estimate of the answer that begins at an entry of a turn, and where it ends.
func (l *Ledger) answerFrom(t *Turn, from int) (size Tokens, end int) {
	for end = from; end < len(t.entries) && t.entries[end].Role == measure.RoleAssistant; end++ {
		e := &t.entries[end]
		size += l.cache.rate.Entry(e)
		l.usage.Hidden.Shown = l.usage.Hidden.Shown || e.Flags.Has(measure.FlagThinking) && e.Text > 0
	}
	return size, end
}

// bill takes what an answer of an estimated size was billed, and returns what it hides.
func (c *calibration) bill(output, size Tokens) Tokens {
	c.Hidden.Billed = max(output-c.scaled(size), 0)
	return c.Hidden.staying(c.Hidden.Billed)
}

// correct adds tokens to the correction of an estimate. As long as nothing was counted they belong
// to all of the content.
func (c *calibration) correct(added, at Tokens) {
	if c.FixedAt == 0 {
		c.Covered = at
	}
	c.Correction += added
	c.Hidden.Added += added
}
