package whatif

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// cacheFor is the time for which a provider keeps its cache, since the last call that read it.
const cacheFor = 5 * time.Minute

// Costs are the costs of calls by the list prices of their models, in billionths of a US dollar.
// Calls of a model without a known price are not in them.
type Costs struct {
	Calls int64 `json:"priced_calls"`

	Input     measure.Money `json:"input"`     // of calls: what they read of caches, and what they read and put there
	Summaries measure.Money `json:"summaries"` // by the prices of their writer, see Options
	// Saved is the further cost of calls without compactions.
	Saved measure.Money `json:"saved"`
	// Lost is the part of Input that arises because a compaction changed content in the provider's
	// cache. LostTokens were read again for that reason.
	Lost       measure.Money  `json:"lost"`
	LostTokens measure.Tokens `json:"lost_tokens"`

	// Reported and Estimated count the calls of a logged session with and without a usage in its turns. With a
	// usage, one factor scales the estimates of all policies: the estimate of the recorded outcomes becomes
	// the amount that workers counted.
	Reported  int64 `json:"reported_calls,omitzero"`
	Estimated int64 `json:"estimated_calls,omitzero"`
}

// All is the cost of calls and summaries together; the input includes lost caches.
func (c *Costs) All() measure.Money { return c.Input + c.Summaries }

func (c *Costs) add(o *Costs) {
	c.Calls += o.Calls
	c.Input += o.Input
	c.Summaries += o.Summaries
	c.Saved += o.Saved
	c.Lost += o.Lost
	c.LostTokens += o.LostTokens
	c.Reported += o.Reported
	c.Estimated += o.Estimated
}

// paid is the money that workers counted for a recorded session, beside our estimate of it.
type paid struct {
	bill     events.Cost
	estimate Costs

	reported, estimated int64 // calls with and without a usage
}

// scale takes the amounts from the estimate to what was paid. Without a recording they stay estimates.
func (c *Costs) scale(p *paid) {
	if p == nil {
		return
	}
	c.Reported, c.Estimated = p.reported, p.estimated
	input := ratio(p.bill.Input, p.estimate.Input)
	for _, m := range []*measure.Money{&c.Input, &c.Saved, &c.Lost} {
		*m = measure.Money(math.Round(float64(*m) * input))
	}
	c.Summaries = measure.Money(math.Round(float64(c.Summaries) * ratio(p.bill.Summaries, p.estimate.Summaries)))
}

// ratio is 1 where there is nothing to compare.
func ratio(paid int64, estimate measure.Money) float64 {
	if paid == 0 || estimate == 0 {
		return 1
	}
	return float64(paid) / float64(estimate)
}

// cache is the beginning of a conversation that its provider has read, by the last call.
type cache struct {
	read int64          // when, in Unix milliseconds
	all  measure.Tokens // carried by that call, and unchanged by the agent since
	same measure.Tokens // of it, what no compaction has changed either
}

// cut notes that the agent changed what follows the first tokens.
func (c *cache) cut(first measure.Tokens) {
	c.all, c.same = min(c.all, first), min(c.same, first)
}

// charge counts what the next call costs. newest is what the turn before it brought, which no cache
// had.
func (w *simulation) charge(now int64, newest measure.Tokens) {
	t, c := w.ruler.call(), &w.cache
	cold := now-c.read > cacheFor.Milliseconds()
	if cold {
		c.cut(0)
	}
	same := min(c.same, t)
	lost := max(min(c.all, t-newest)-same, 0)
	w.cache = cache{read: now, all: t, same: t}
	if !w.ruler.priced {
		return
	}
	p, f := w.ruler.prices.For(t), &w.sum.Costs
	f.Calls++
	f.Input += p.Cached*measure.Money(same) + p.Write*measure.Money(t-same)
	f.Lost += (p.Write - p.Cached) * measure.Money(lost)
	f.LostTokens += lost
	if cold {
		f.Saved += p.Write * measure.Money(w.sum.taken)
	} else {
		f.Saved += p.Cached * measure.Money(w.sum.taken)
	}
}

// called notes whether the call that a turn has the answer of has a usage.
func (p *paid) called(t *events.Turn, messages []dialect.Message) {
	switch answered := slices.ContainsFunc(messages, func(m dialect.Message) bool { return m.Role == dialect.RoleAssistant }); {
	case answered && t.Usage != nil:
		p.reported++
	case answered:
		p.estimated++
	}
}

// chargeSummary counts what a summary costs.
func (w *simulation) chargeSummary(j *events.Job, in, out measure.Tokens) {
	prices, priced := w.ruler.prices, w.ruler.priced
	if w.writer != nil {
		prices, priced = w.ruler.table.Of(w.writer(j))
	}
	if p := prices.For(in); priced {
		w.sum.Costs.Summaries += p.Input*measure.Money(in) + p.Output*measure.Money(out)
	}
}

// invalidate notes which part of the cache a compaction leaves as it is: the messages in front
// of the first that differs.
func (w *simulation) invalidate(b *events.Compacted, raw []codec.Raw, history []dialect.Message) error {
	if w.cache.same == 0 {
		return nil
	}
	before, _, err := w.own.render(w.own.ledger.ViewAt(b.Generation - 1))
	if err != nil {
		return fmt.Errorf("the history before: %w", err)
	}
	n := 0
	for n < min(len(raw), len(before), len(history)) && bytes.Equal(raw[n], before[n]) {
		n++
	}
	w.cache.same = min(w.cache.same, w.ruler.fixed()+w.ruler.of(history[:n]))
	return nil
}
