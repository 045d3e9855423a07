package compaction

import (
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// The one ratio that the usages of a session correct.
const (
	// Its bounds.
	leastRatio PPM = 500_000
	mostRatio  PPM = 2_500_000

	// trust is how many tokens at a ratio of 1 the usages of a session are weighed
	// against, so that the first few calls do not swing it.
	trust Tokens = 60_000
	// leastStep and mostStep bound what one call teaches, as shares of what the ratio had
	// it take: a provider also counts what the agent never published.
	leastStep PPM = 700_000
	mostStep  PPM = 1_500_000
	// hysteresis is the least change of the ratio, as a share of it: a ratio that
	// moved with every call would move the trigger too.
	hysteresis PPM = 10_000
	// little is how many estimated tokens are too few to show what a token of them costs.
	little Tokens = 20_000
	// memory is how many estimated tokens are learned from before what was learned
	// counts half.
	memory Tokens = 1_000_000
)

// calibration is what the usages of a session teach about our estimates: input =
// ratio × estimate + correction, exact at the last anchor. The correction has what answers hide
// since then, see [hidden].
// See docs/adr/0027.
type calibration struct {
	Ratio      PPM    `json:"ratio"` // 0 as long as it is 1
	Correction Tokens `json:"correction"`
	Least      PPM    `json:"least"` // share of an estimate that is left of it, whatever the usages

	// Covered is the estimate that the correction was counted at, less what was removed
	// since. Fixed is how much of the correction no compaction removes: what the count of
	// the smallest estimate, FixedAt, had beyond it is mostly system prompt and tools that
	// were not published.
	Covered Tokens `json:"covered,omitzero"`
	Fixed   Tokens `json:"fixed,omitzero"`
	FixedAt Tokens `json:"fixed_at,omitzero"`
	// Even: the correction is below Fixed, and each token that it covers has the same part of it,
	// however few they are.
	Even bool `json:"even,omitzero"`

	// The last anchor: input by the provider, estimate by us, in the view of a
	// generation. Input is 0 when nothing can be learned from the next one.
	Input      Tokens `json:"input"`
	Estimate   Tokens `json:"estimate"`
	Generation int64  `json:"generation"`

	// Growth of calls from one anchor to the next, by both.
	Counted   Tokens `json:"counted"`
	Estimated Tokens `json:"estimated"`

	Hidden hidden `json:"hidden,omitzero"`
}

// anchor corrects the estimate by what the provider counted for a call: its input is
// exact for the view the agent had at its generation. From then on only later content
// is estimated. at is our estimate of the same input under the view of now; what later
// compactions saved was still in it. It reports whether the usage counts.
func (l *Ledger) anchor(u *events.Usage, generation int64, at Tokens) bool {
	input := inputOf(u)
	if input > l.cache.largest { // of no model that there is
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
			return false // the view it was counted on has diverged from this one
		}
		input -= g.Saved
	}
	l.usage.count(input, at)
	return true
}

// count makes an estimate of the view of now exact.
func (c *calibration) count(input, at Tokens) {
	c.Correction = input - c.scaled(at)
	if c.Covered == 0 || c.FixedAt == 0 || at <= c.FixedAt {
		c.Fixed, c.FixedAt = max(c.Correction, 0), max(at, 1)
	}
	c.Covered, c.Even = max(at, 1), false
	c.Hidden.counted()
}

// learn compares what the input has grown by since the last anchor of the same
// view with our estimate of it, and with what its answers hide.
func (c *calibration) learn(input, at Tokens, generation int64) {
	if grown := at - c.Estimate; c.Input > 0 && c.Generation == generation && grown > 0 {
		counted := input - c.Input
		counted -= c.Hidden.learn(counted-c.scaled(grown), grown)
		least, most := PPM(leastStep.Share(Tokens(c.ratio()))), PPM(mostStep.Share(Tokens(c.ratio())))
		c.grow(min(max(counted, least.Share(grown)), most.Share(grown)), grown)
	}
	c.Input, c.Estimate, c.Generation = input, at, generation
}

// grow takes what a provider counted for content of an estimate. It teaches no more than the
// bounds of the ratio, so the ratio, a mean of what was taught, stays within them.
func (c *calibration) grow(counted, estimate Tokens) {
	c.Counted += min(max(counted, leastRatio.Share(estimate)), mostRatio.Share(estimate))
	c.Estimated += estimate
	if c.Estimated > memory {
		c.Counted, c.Estimated = c.Counted/2, c.Estimated/2
	}
	c.moveRatio(PPM((trust + c.Counted) * measure.Million / (trust + c.Estimated)))
}

// moveRatio sets the ratio, unless it changes by too little.
func (c *calibration) moveRatio(ratio PPM) {
	old := c.ratio()
	if change := ratio - old; max(change, -change) >= PPM(hysteresis.Share(Tokens(old))) {
		c.Ratio = ratio
	}
}

func (c *calibration) ratio() PPM {
	if c.Ratio == 0 {
		return measure.Million
	}
	return c.Ratio
}

// dropAnchor drops the last anchor: what the next one counts is another history.
func (c *calibration) dropAnchor() { c.Input = 0 }

// clear drops what was counted for a history of which nothing is left.
func (c *calibration) clear() {
	c.Correction, c.Covered, c.FixedAt = 0, 0, 0
	c.Hidden.counted()
}

// scaled is an estimate at the ratio, rounded up.
func (c *calibration) scaled(estimate Tokens) Tokens { return c.ratio().Ceil(estimate) }

// corrected is an estimate of a whole input, corrected by the usages.
func (l *Ledger) corrected(estimate Tokens) Tokens {
	return max(l.usage.scaled(estimate)+l.usage.Correction, l.usage.Least.Ceil(estimate))
}

// floor sets the least share of our estimate that any usage leaves of it: a token
// for each 8 bytes in view, so that a false usage cannot switch compaction off. It
// moves with turns only: until the next one, a plan takes the same share of what
// it leaves, and what was emitted about it stays true.
func (l *Ledger) floor() {
	g := &l.cache
	if estimate := int64(l.prompt().Total()); estimate > 0 {
		bytes := g.bytes + l.system.Bytes + l.tools.Bytes
		l.usage.Least = PPM(min(measure.CeilDiv(measure.CeilDiv(bytes, measure.FloorBytes)*measure.Million, estimate), measure.Million))
	}
}

// rate is what a token of our estimate costs of the content that the correction covers,
// when messages leave as a whole or, false, when only their contents are cleared. A count
// beyond our estimate may be of something beside the contents, such as a reminder that was
// not published: it leaves with its message only. Little content does not move the rate
// far: what is beyond the estimate need not belong to it.
func (c *calibration) rate(whole bool) PPM {
	if c.Covered == 0 {
		return c.ratio()
	}
	over, sum := max(c.Covered, little), c.Correction-c.Fixed
	if c.Even || c.FixedAt == 0 { // nothing was counted: all of it is of answers
		over = c.Covered
	}
	if c.FixedAt > 0 { // it is of answers that came since
		sum -= c.Hidden.Added
	}
	beyond := PPM(measure.FloorDiv(sum*measure.Million, over))
	if !whole && !c.Even {
		beyond = min(beyond, 0)
	}
	return min(max(c.ratio()+beyond, leastRatio), mostRatio)
}

// moved is by how much the input shrinks where the history becomes so many estimated tokens
// smaller; both are negative where it grows again. Content that the correction covers is
// removed first, since all after the last count is newer.
func (c *calibration) moved(removed Tokens, whole bool) Tokens {
	covered := min(removed, c.Covered)
	return c.rate(whole).Share(covered) + c.ratio().Share(removed-covered)
}

// input is what the next call takes with a history of so many tokens in place of this one,
// by messages that leave as a whole or by contents that are cleared; see [calibration.rate].
func (l *Ledger) input(history Tokens, whole bool) Tokens {
	at := l.prompt().Total()
	removed := l.cache.visible - history
	return max(l.usage.scaled(at)+l.usage.Correction-l.usage.moved(removed, whole), l.usage.Least.Ceil(at-removed))
}

// availableFor is the largest history with which the next call takes at most total, however
// it is reached: the inverse of input for contents that are cleared, which is the larger one.
func (l *Ledger) availableFor(total Tokens) Tokens { return l.available(total, false) }

// available is the inverse of input.
func (l *Ledger) available(total Tokens, whole bool) Tokens {
	at, c := l.prompt().Total(), &l.usage
	over := c.scaled(at) + c.Correction - total
	bound := Tokens(measure.Million/leastRatio)*max(over, -over) + 4 // the lowest rate, and what is rounded
	removed := Tokens(sort.Search(int(2*bound), func(n int) bool { return c.moved(Tokens(n)-bound, whole) >= over })) - bound
	most := l.cache.visible - removed
	if c.Least > 0 {
		most = min(most, measure.FloorDiv(total*measure.Million, Tokens(c.Least))-(at-l.cache.visible))
	}
	return most
}

// resize sets the history in view to a number of tokens, and takes the correction along: what
// was removed takes the part that was counted for it, and what came back brings it.
func (l *Ledger) resize(history Tokens, whole bool) {
	input := l.input(history, whole)
	l.recorrect(l.cache.visible-history, input)
	l.cache.visible = history
}

// recorrect makes input the estimate of the view without some tokens.
func (l *Ledger) recorrect(removed, input Tokens) {
	c := &l.usage
	c.Correction = input - c.scaled(l.prompt().Total()-removed)
	if c.Covered > 0 {
		c.Covered = max(c.Covered-removed, 1)
	}
}

// limits are what providers showed of the window of a model, until it changes.
type limits struct {
	stated Tokens // the limit that a refusal stated, 0 for none

	// Of calls whose provider stated no limit: the largest input that one took, as its usage
	// counts, and the smallest that one refused, as we estimate it. 0 is none.
	accepted, refused Tokens

	// Of calls with a usage: how many, and the longest answer, as the provider counts.
	answers int64
	longest Tokens
}

// Bounds of what answers teach about the reserve.
const (
	enoughAnswers = 8
	leastReserve  = 8192 // tokens, also beside short answers
)

// answered counts an answer, and reports whether the reserve may be another one.
func (m *limits) answered(output Tokens) bool {
	m.answers++
	if output <= m.longest {
		return m.answers == enoughAnswers
	}
	m.longest = output
	return m.answers >= enoughAnswers
}

// learnt is the longest answer, where there were enough of them to learn from.
func (m *limits) learnt() Tokens {
	if m.answers < enoughAnswers {
		return 0
	}
	return m.longest
}

// reserve is twice the longest answer of a session with enough of them, at most what it would be without.
func (m *limits) reserve(most Tokens) Tokens {
	if m.answers < enoughAnswers {
		return most
	}
	return min(most, max(2*m.longest, leastReserve))
}

// Bounds of what refusals without a number teach.
const (
	// unseen is the share of a refused input that is taken for the limit where no call is
	// known to have been taken.
	unseen PPM = 900_000
	// leastLearnt is the least share of what the table allows: an agent that reports other
	// errors as overflows does not lose its window.
	leastLearnt PPM = 100_000
)

// input is the most input that the provider seems to take, 0 where no call shows it: half
// the way from the largest that was taken to the smallest that was refused.
func (m *limits) input() Tokens {
	switch {
	case m.refused == 0:
		return 0
	case m.accepted == 0:
		return unseen.Share(m.refused)
	default:
		return max(m.accepted, (m.accepted+m.refused)/2)
	}
}

// raise is a window as it is known of a model, or as large as an input that its provider
// took. The window of a policy is that of its operator, whatever the model takes.
func (m *limits) raise(window Tokens, p *Policy) Tokens {
	raised := max(window, m.accepted)
	if p.WindowTokens > 0 {
		raised = min(raised, p.WindowTokens)
	}
	return max(window, raised)
}

// accept takes the usage of a call that a provider took. An earlier refusal is no limit
// below that. A usage above the window of any model is false.
func (l *Ledger) accept(u *events.Usage) {
	input, x := inputOf(u), &l.limits
	if input > l.cache.largest {
		input = min(input, l.cache.listed)
	}
	if l.cache.policy.LearnReserve && u.Output > 0 && x.answered(min(Tokens(u.Output), l.cache.largest)) {
		l.bound()
	}
	if input <= x.accepted {
		return
	}
	was := l.WindowRaised()
	x.accepted = input
	if x.stated > 0 {
		x.stated = max(x.stated, input)
	}
	if x.refused > 0 {
		x.refused = max(x.refused, input)
	}
	l.bound()
	if !was && l.WindowRaised() {
		l.noteWindow()
	}
}

// inputOf is the input that a provider counted.
func inputOf(u *events.Usage) Tokens { return Tokens(u.Input + u.CacheRead + u.CacheCreate) }

// WindowRaised reports whether the session's provider took more input than the window or the
// input limit that is known of its model.
func (l *Ledger) WindowRaised() bool {
	g := &l.cache
	if g.config == nil {
		return false
	}
	return l.limits.raise(g.listed, g.policy) > g.listed || g.input > 0 && l.limits.accepted > g.input
}

// lower takes an input that was refused. An accepted input that is not below it is the older fact.
func (m *limits) lower(input Tokens) {
	if m.accepted >= input {
		m.accepted = 0
	}
	if m.refused == 0 || input < m.refused {
		m.refused = input
	}
}

// refusedAt takes a refusal of an input that stated no limit.
func (l *Ledger) refusedAt(input Tokens) {
	l.limits.lower(input)
	l.bound()
}

// statedAt takes the limit that a refusal stated.
func (l *Ledger) statedAt(limit Tokens) {
	x := &l.limits
	x.stated, x.accepted = limit, min(x.accepted, limit)
	l.bound()
}

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

	// Stayed is how many of the billed tokens were in the next prompt.
	Stayed Tokens `json:"stayed,omitzero"`
	Of     Tokens `json:"of,omitzero"`

	// Sum is of what the last answers hid.
	Sum     Tokens `json:"sum,omitzero"`
	Answers int64  `json:"answers,omitzero"`

	Shown bool `json:"shown,omitzero"` // an answer showed its thinking
}

// staying is the part of billed tokens that the next prompt has.
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
