package compaction

import (
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/weigh"
)

// The ratio of a session, corrected by its usages.
const (
	// Its bounds.
	leastRatio measure.PPM = 500_000
	mostRatio  measure.PPM = 2_500_000

	// trust is the weight of the initial ratio of 1, in tokens, so that the first few calls do not swing it.
	trust measure.Tokens = 60_000
	// One call moves the ratio at most between these shares of it: providers also count content that the
	// agent never published.
	leastStep measure.PPM = 700_000
	mostStep  measure.PPM = 1_500_000
	// hysteresis is the least change of the ratio, as a share of it: with the ratio the trigger moves.
	hysteresis measure.PPM = 10_000
	// little is the number of estimated tokens below which a count shows nothing about the cost of a token.
	little measure.Tokens = 20_000
	// memory is the number of estimated tokens after which past growth counts half.
	memory measure.Tokens = 1_000_000
)

// calibration corrects our estimates by the usages of a session: input = ratio × estimate + correction, exact
// at the last anchor. The correction includes the hidden parts of answers since then, see [hidden].
// See docs/adr/0027.
type calibration struct {
	Ratio      measure.PPM    `json:"ratio"` // 0 as long as it is 1
	Correction measure.Tokens `json:"correction"`
	Least      measure.PPM    `json:"least"` // lower bound of the input, as a share of the estimate, whatever the usages

	// Covered is the estimate at which the correction was counted, less the parts removed since. Fixed is the
	// part of the correction that no compaction removes: the excess of the count at the smallest estimate,
	// FixedAt. It is mostly an unpublished system prompt and tools.
	Covered measure.Tokens `json:"covered,omitzero"`
	Fixed   measure.Tokens `json:"fixed,omitzero"`
	FixedAt measure.Tokens `json:"fixed_at,omitzero"`
	// Even: the correction is below Fixed, and is spread over all covered tokens alike.
	Even bool `json:"even,omitzero"`

	// The last anchor: input by the provider, estimate by us, in the view of a generation. Input is 0 if the
	// next anchor is of another history.
	Input      measure.Tokens `json:"input"`
	Estimate   measure.Tokens `json:"estimate"`
	Generation int64          `json:"generation"`

	// Growth of calls from one anchor to the next, by both.
	Counted   measure.Tokens `json:"counted"`
	Estimated measure.Tokens `json:"estimated"`

	Hidden hidden `json:"hidden,omitzero"`
}

// anchor corrects the estimate by the provider's count for a call: the input is exact for the view at its
// generation, and only later content is estimated. at is our estimate of that input under the present view,
// so the savings of later compactions are taken off the count. It reports whether the usage counts.
func (l *Ledger) anchor(u *events.Usage, generation int64, at measure.Tokens) bool {
	input := inputOf(u)
	if l.isFalse(u) {
		input = min(input, l.cache.window)
	}
	if input == 0 || generation > l.Generation() {
		return false // an agent cannot have applied what was not published
	}
	if generation == l.Generation() && l.cache.rate.Classes {
		l.usage.learn(input, at, generation)
	}
	for _, g := range l.generations[generation:] {
		if g.unknown() {
			return false // the counted view and this one have diverged
		}
		input -= g.Saved
	}
	l.usage.count(input, at)
	return true
}

// count makes an estimate of the present view exact.
func (c *calibration) count(input, at measure.Tokens) {
	c.Correction = input - c.scaled(at)
	if c.Covered == 0 || c.FixedAt == 0 || at <= c.FixedAt {
		c.Fixed, c.FixedAt = max(c.Correction, 0), max(at, 1)
	}
	c.Covered, c.Even = max(at, 1), false
	c.Hidden.counted()
}

// learn compares the growth of the input since the last anchor of the same view with our estimate of it,
// without the hidden parts of its answers.
func (c *calibration) learn(input, at measure.Tokens, generation int64) {
	if grown := at - c.Estimate; c.Input > 0 && c.Generation == generation && grown > 0 {
		counted := input - c.Input
		counted -= c.Hidden.learn(counted-c.scaled(grown), grown)
		least, most := measure.PPM(leastStep.Share(measure.Tokens(c.ratio()))), measure.PPM(mostStep.Share(measure.Tokens(c.ratio())))
		c.grow(min(max(counted, least.Share(grown)), most.Share(grown)), grown)
	}
	c.Input, c.Estimate, c.Generation = input, at, generation
}

// grow adds counted and estimated growth to the ratio, a mean of both. Each growth is cut to the bounds of
// the ratio, so the ratio stays within them.
func (c *calibration) grow(counted, estimate measure.Tokens) {
	c.Counted += min(max(counted, leastRatio.Share(estimate)), mostRatio.Share(estimate))
	c.Estimated += estimate
	if c.Estimated > memory {
		c.Counted, c.Estimated = c.Counted/2, c.Estimated/2
	}
	c.moveRatio(measure.PPM((trust + c.Counted) * measure.Million / (trust + c.Estimated)))
}

// moveRatio sets the ratio, unless it changes by too little.
func (c *calibration) moveRatio(ratio measure.PPM) {
	old := c.ratio()
	if change := ratio - old; max(change, -change) >= measure.PPM(hysteresis.Share(measure.Tokens(old))) {
		c.Ratio = ratio
	}
}

func (c *calibration) ratio() measure.PPM {
	if c.Ratio == 0 {
		return measure.Million
	}
	return c.Ratio
}

// dropAnchor drops the last anchor: the next count is of another history.
func (c *calibration) dropAnchor() { c.Input = 0 }

// clear drops the correction of a history of which nothing is left.
func (c *calibration) clear() {
	c.Correction, c.Covered, c.FixedAt = 0, 0, 0
	c.Hidden.counted()
}

// scaled is an estimate at the ratio, rounded up.
func (c *calibration) scaled(estimate measure.Tokens) measure.Tokens { return c.ratio().Ceil(estimate) }

// corrected is an estimate of a whole input, corrected by the usages.
func (l *Ledger) corrected(estimate measure.Tokens) measure.Tokens {
	return max(l.usage.scaled(estimate)+l.usage.Correction, l.usage.Least.Ceil(estimate))
}

// floor sets the lower bound of the input: a token for each 8 bytes in view, so that a false usage cannot
// switch compaction off. It changes with turns only. Until the next turn a plan uses the same share, and
// emitted figures stay true.
func (l *Ledger) floor() {
	g := &l.cache
	if estimate := int64(l.prompt().Total()); estimate > 0 {
		bytes := g.bytes + l.system.Bytes + l.tools.Bytes
		l.usage.Least = measure.PPM(min(measure.CeilDiv(measure.CeilDiv(bytes, weigh.FloorBytes)*measure.Million, estimate), measure.Million))
	}
}

// rate is the cost of an estimated token of covered content: whole if messages leave as a whole, else if only
// their contents are cleared. A count above our estimate may be of something beside the contents, such as an
// unpublished reminder, which leaves with its message only. A little content does not move the rate far: the
// excess need not belong to it.
func (c *calibration) rate(whole bool) measure.PPM {
	if c.Covered == 0 {
		return c.ratio()
	}
	over, sum := max(c.Covered, little), c.Correction-c.Fixed
	if c.Even || c.FixedAt == 0 { // nothing was counted: the whole correction is of answers
		over = c.Covered
	}
	if c.FixedAt > 0 { // counts do not have the hidden parts of later answers
		sum -= c.Hidden.Added
	}
	beyond := measure.PPM(measure.FloorDiv(sum*measure.Million, over))
	if !whole && !c.Even {
		beyond = min(beyond, 0)
	}
	return min(max(c.ratio()+beyond, leastRatio), mostRatio)
}

// moved is the decrease of the input when the history loses so many estimated tokens; both are negative if it
// grows. Covered content is removed first, since content after the last count is newer.
func (c *calibration) moved(removed measure.Tokens, whole bool) measure.Tokens {
	covered := min(removed, c.Covered)
	return c.rate(whole).Share(covered) + c.ratio().Share(removed-covered)
}

// input is the size of the next call with a history of so many tokens in place of this one. whole: messages
// leave as a whole, see [calibration.rate].
func (l *Ledger) input(history measure.Tokens, whole bool) measure.Tokens {
	at := l.prompt().Total()
	removed := l.cache.visible - history
	return max(l.usage.scaled(at)+l.usage.Correction-l.usage.moved(removed, whole), l.usage.Least.Ceil(at-removed))
}

// availableFor is the largest history with which the next call takes at most total, if contents are cleared:
// that is the larger of the two inverses of input.
func (l *Ledger) availableFor(total measure.Tokens) measure.Tokens { return l.available(total, false) }

// available is the inverse of input.
func (l *Ledger) available(total measure.Tokens, whole bool) measure.Tokens {
	at, c := l.prompt().Total(), &l.usage
	over := c.scaled(at) + c.Correction - total
	bound := measure.Tokens(measure.Million/leastRatio)*max(over, -over) + 4 // the lowest rate, and rounding
	removed := measure.Tokens(sort.Search(int(2*bound), func(n int) bool { return c.moved(measure.Tokens(n)-bound, whole) >= over })) - bound
	most := l.cache.visible - removed
	if c.Least > 0 {
		most = min(most, measure.FloorDiv(total*measure.Million, measure.Tokens(c.Least))-(at-l.cache.visible))
	}
	return most
}

// resize sets the history in view to a number of tokens. Removed content takes its part of the correction
// with it, and restored content brings it back.
func (l *Ledger) resize(history measure.Tokens, whole bool) {
	input := l.input(history, whole)
	l.recorrect(l.cache.visible-history, input)
	l.cache.visible = history
}

// recorrect makes input the estimate of the view without the removed tokens.
func (l *Ledger) recorrect(removed, input measure.Tokens) {
	c := &l.usage
	c.Correction = input - c.scaled(l.prompt().Total()-removed)
	if c.Covered > 0 {
		c.Covered = max(c.Covered-removed, 1)
	}
}

// limits are a model's bounds as its provider's answers showed them, until the model changes.
type limits struct {
	Stated measure.Tokens `json:"stated"` // the limit that a refusal stated, 0 for none

	// Of calls whose provider stated no limit: the largest accepted input, by its usage, and the smallest
	// refused one, by our estimate. 0 is none.
	Accepted measure.Tokens `json:"accepted,omitzero"`
	Refused  measure.Tokens `json:"refused,omitzero"`

	// Calls with a usage: their number, and the longest answer, by the provider's count.
	Answers int64          `json:"answers,omitzero"`
	Longest measure.Tokens `json:"longest,omitzero"`
}

// Bounds of the learnt reserve.
const (
	enoughAnswers = 8
	leastReserve  = 8192 // tokens, also beside short answers
)

// answered counts an answer, and reports whether the reserve may have changed.
func (m *limits) answered(output measure.Tokens) bool {
	m.Answers++
	if output <= m.Longest {
		return m.Answers == enoughAnswers
	}
	m.Longest = output
	return m.Answers >= enoughAnswers
}

// learnt is the longest answer, 0 before there are enough of them.
func (m *limits) learnt() measure.Tokens {
	if m.Answers < enoughAnswers {
		return 0
	}
	return m.Longest
}

// reserve is twice the longest answer of a session with enough of them, but at most most.
func (m *limits) reserve(most measure.Tokens) measure.Tokens {
	if m.Answers < enoughAnswers {
		return most
	}
	return min(most, max(2*m.Longest, leastReserve))
}

// Bounds of the limit learnt from refusals without a number.
const (
	// unseen is the share of a refused input that counts as the limit while no call is known to have been
	// accepted.
	unseen measure.PPM = 900_000
	// leastLearnt is the lower bound, as a share of the table's window: an agent that reports other errors as
	// overflows does not lose its window.
	leastLearnt measure.PPM = 100_000
)

// input is the most input that the provider seems to accept: halfway from the largest accepted to the
// smallest refused one. It is 0 while no call shows it.
func (m *limits) input() measure.Tokens {
	switch {
	case m.Refused == 0:
		return 0
	case m.Accepted == 0:
		return unseen.Share(m.Refused)
	default:
		return max(m.Accepted, (m.Accepted+m.Refused)/2)
	}
}

// raise is the window of a model, or the largest input that its provider accepted if that is larger. A window
// stated by the policy is never raised.
func (m *limits) raise(window measure.Tokens, p *policy.Policy) measure.Tokens {
	raised := max(window, m.Accepted)
	if p.WindowTokens > 0 {
		raised = min(raised, p.WindowTokens)
	}
	return max(window, raised)
}

// accept takes the usage of an accepted call. It overrides a lower limit from an earlier refusal.
func (l *Ledger) accept(u *events.Usage) {
	input, x := inputOf(u), &l.limits
	if l.isFalse(u) {
		input = min(input, l.cache.listed)
	}
	if l.cache.policy.LearnReserve && u.Output > 0 && x.answered(min(measure.Tokens(u.Output), l.cache.largest)) {
		l.bound()
	}
	if input <= x.Accepted {
		return
	}
	was := l.WindowRaised()
	x.Accepted = input
	if x.Stated > 0 {
		x.Stated = max(x.Stated, input)
	}
	if x.Refused > 0 {
		x.Refused = max(x.Refused, input)
	}
	l.bound()
	if !was && l.WindowRaised() {
		l.noteWindow()
	}
}

// isFalse reports a usage beyond the window of any model.
func (l *Ledger) isFalse(u *events.Usage) bool { return inputOf(u) > l.cache.largest }

// inputOf is the input that a provider counted.
func inputOf(u *events.Usage) measure.Tokens {
	return measure.Tokens(u.Input + u.CacheRead + u.CacheCreate)
}

// WindowRaised reports whether the session's provider accepted more input than the known window or input
// limit of its model.
func (l *Ledger) WindowRaised() bool {
	g := &l.cache
	if g.config == nil {
		return false
	}
	return l.limits.raise(g.listed, g.policy) > g.listed || g.input > 0 && l.limits.Accepted > g.input
}

// lower takes a refused input. An accepted input at or above it is the older fact, and is dropped.
func (m *limits) lower(input measure.Tokens) {
	if m.Accepted >= input {
		m.Accepted = 0
	}
	if m.Refused == 0 || input < m.Refused {
		m.Refused = input
	}
}

// refusedAt takes a refusal of an input without a stated limit.
func (l *Ledger) refusedAt(input measure.Tokens) {
	l.limits.lower(input)
	l.bound()
}

// statedAt takes the limit that a refusal stated.
func (l *Ledger) statedAt(limit measure.Tokens) {
	x := &l.limits
	x.Stated, x.Accepted = limit, min(x.Accepted, limit)
	l.bound()
}

// An answer is larger in the next prompt than its published part: the provider keeps thinking that the agent
// publishes in part or not at all. The billed output of its usage includes it.
// See docs/adr/0053.
const (
	// supposed is the assumed hidden part of an answer, as a share of its estimate, with the weight of
	// supposedOf answers. It is for a model that hides its thinking, in a session that showed none.
	supposed   measure.PPM    = 330_000
	supposedOf measure.Tokens = 5
	// mostSupposed bounds the effect of one answer on the mean: a few answers have most of the thinking, and
	// the next ones are unknown.
	mostSupposed measure.Tokens = 2_000
	// mostBilled is more than any answer has, and keeps products of two bills within 64 bits.
	mostBilled measure.Tokens = 1 << 30
	// stayTrust is the number of hidden tokens assumed to stay before calls show it.
	stayTrust measure.Tokens = 1_000
	// hiddenMemory tokens, or hiddenAnswers answers, are learnt from before the past counts half.
	hiddenMemory  measure.Tokens = 200_000
	hiddenAnswers int64          = 128
)

// hidden has the hidden parts of a session's answers.
type hidden struct {
	// Billed is the excess of the last anchor's answer over our estimate of it. Added is the part of the
	// correction for it and for the answers since.
	Billed measure.Tokens `json:"billed,omitzero"`
	Added  measure.Tokens `json:"added,omitzero"`

	// Of is the sum of the learnt bills, and Stayed the part of it that was in the next prompt.
	Stayed measure.Tokens `json:"stayed,omitzero"`
	Of     measure.Tokens `json:"of,omitzero"`

	// Sum is the total of the last answers' hidden parts.
	Sum     measure.Tokens `json:"sum,omitzero"`
	Answers int64          `json:"answers,omitzero"`

	Shown bool `json:"shown,omitzero"` // an answer showed its thinking
}

// staying is the expected part of billed tokens in the next prompt.
func (h *hidden) staying(billed measure.Tokens) measure.Tokens {
	return (stayTrust + h.Stayed) * billed / (stayTrust + h.Of)
}

// mean is the assumed hidden part of an answer without a usage.
func (h *hidden) mean(size measure.Tokens, hides bool) measure.Tokens {
	sum := h.Sum
	if hides && !h.Shown {
		sum += supposed.Share(size) * supposedOf
	}
	return sum / (supposedOf + measure.Tokens(h.Answers))
}

// learn takes the growth of an input beyond our estimate, grown, and returns the part that its answers hid.
func (h *hidden) learn(beyond, grown measure.Tokens) measure.Tokens {
	others := h.Added - h.staying(h.Billed)
	if h.Billed >= grown/4 { // the error of our estimate is as large as a smaller bill
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

// counted notes that an input was counted, with all of its hidden parts.
func (h *hidden) counted() { h.Billed, h.Added = 0, 0 }

// answers adds the hidden parts of a turn's answers, from entry from on, to the correction, and returns them.
// If billed, the usage is of the first of them.
func (l *Ledger) answers(t *Turn, from int, billed bool) (added measure.Tokens) {
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
			added += l.usage.bill(min(measure.Tokens(t.usage.Output), l.cache.window/2, mostBilled), size)
			billed = false
		default:
			added += l.usage.Hidden.mean(size, l.cache.hides)
		}
		from = next
	}
	l.usage.correct(added, l.prompt().Total())
	return added
}

// answerFrom returns the estimate of the answer that begins at an entry of a turn, and its end.
func (l *Ledger) answerFrom(t *Turn, from int) (size measure.Tokens, end int) {
	for end = from; end < len(t.entries) && t.entries[end].Role == measure.RoleAssistant; end++ {
		e := &t.entries[end]
		size += l.cache.rate.Entry(e)
		l.usage.Hidden.Shown = l.usage.Hidden.Shown || e.Flags.Has(measure.FlagThinking) && e.Text > 0
	}
	return size, end
}

// bill takes the billed output of an answer of an estimated size, and returns its hidden part.
func (c *calibration) bill(output, size measure.Tokens) measure.Tokens {
	c.Hidden.Billed = max(output-c.scaled(size), 0)
	return c.Hidden.staying(c.Hidden.Billed)
}

// correct adds tokens to the correction of an estimate. Before the first count they belong to all of the
// content.
func (c *calibration) correct(added, at measure.Tokens) {
	if c.FixedAt == 0 {
		c.Covered = at
	}
	c.Correction += added
	c.Hidden.Added += added
}
