package measure

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/models"
)

// Money is an amount in billionths of a US dollar: a price in thousandths of a dollar for a million tokens is
// the same number for one token.
type Money int64

// Times is the cost of tokens at this price each.
func (m Money) Times(t Tokens) Money { return m * Money(min(t, mostPriced)) }

// Bounds that keep amounts within 64 bits: tokens that are priced, and a price.
const (
	mostPriced Tokens = 1 << 32
	mostPrice  Money  = 1_000_000
)

// Prices are a model's list prices for one token, without discounts for batches or surcharges for a region.
type Prices struct {
	Input  Money `json:"input"`  // read without a cache
	Cached Money `json:"cached"` // read from the provider's cache
	Write  Money `json:"write"`  // read and written to that cache, for five minutes; the input price if writing is free
	Output Money `json:"output"`
	// Long are the prices of a call with a longer input; nil if all calls cost the same.
	Long *LongPrices `json:"long,omitzero"`
}

// LongPrices are the prices of each token of a call whose input is over a limit.
type LongPrices struct {
	Over   Tokens `json:"over"`
	Input  Money  `json:"input"`
	Cached Money  `json:"cached"`
	Write  Money  `json:"write"`
	Output Money  `json:"output"`
}

// For returns the prices of a call with an input of t tokens.
func (p Prices) For(t Tokens) Prices {
	if l := p.Long; l != nil && t > l.Over {
		return Prices{Input: l.Input, Cached: l.Cached, Write: l.Write, Output: l.Output}
	}
	return p
}

// PriceTable has the prices of models by their makers' names. A name without prices keeps a shorter name from
// pricing its model.
type PriceTable map[string]*Prices

// DefaultPrices returns the table of the prices of models.json.
func DefaultPrices() PriceTable { return catalog.Prices() }

// With returns the table with the prices of another added, which replace its own. Its error joins one for
// each bad entry.
func (t PriceTable) With(over PriceTable) (PriceTable, error) {
	out := maps.Clone(t)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(over)) {
		p := over[name]
		if p != nil && !p.valid() {
			errs = append(errs, fmt.Errorf("%s: input, cached, write and output must be between 0 and %d thousandths of a dollar for a million tokens, and long.over above 0", name, mostPrice))
		}
		out[name] = p
	}
	return out, errors.Join(errs...)
}

func (p *Prices) valid() bool {
	ok := func(all ...Money) bool {
		return !slices.ContainsFunc(all, func(m Money) bool { return m < 0 || m > mostPrice })
	}
	l := p.Long
	return ok(p.Input, p.Cached, p.Write, p.Output) && (l == nil || l.Over > 0 && ok(l.Input, l.Cached, l.Write, l.Output))
}

// ReadPrices reads a table of prices in the form of the embedded one.
func ReadPrices(data []byte) (PriceTable, error) {
	var t PriceTable
	if err := codec.UnmarshalStrict(data, &t); err != nil { //nolint:forbidigo // a file of the operator
		return nil, fmt.Errorf("read prices: %w", err)
	}
	return t, nil
}

// Summary is the cost of the models called for a summary; unpriced is 1 if any has no price.
func (t PriceTable) Summary(s *events.Summary) (money Money, unpriced int64) {
	calls := s.Calls
	if len(calls) == 0 {
		calls = []events.ModelCall{{Model: s.Model, SummaryUsage: s.Usage}}
	}
	for _, c := range calls {
		in, out := Tokens(c.Input), Tokens(c.Output)
		p, priced := t.Of(c.Model)
		switch {
		case priced && in >= 0 && out >= 0:
			p = p.For(in)
			money += p.Input.Times(in) + p.Output.Times(out)
		case c.SummaryUsage != (events.SummaryUsage{}):
			unpriced = 1
		}
	}
	return money, unpriced
}

// Of returns the prices of a model: those of the longest name in the table that begins the model's name. ok
// is false if there are none.
func (t PriceTable) Of(model string) (Prices, bool) {
	p := t[longest(t, models.Canonical(model))]
	if p == nil {
		return Prices{}, false
	}
	return *p, true
}

// Catalog is models.json: the context windows and list prices of models, by source. `make models`
// refreshes the source models.dev.
type Catalog struct {
	Sources []Source `json:"sources"` // a later one overrides an earlier one
}

// Source has windows and prices from one place, read on a date.
type Source struct {
	Name    string     `json:"name"`
	Date    string     `json:"date"`
	Windows Windows    `json:"windows"`
	Prices  PriceTable `json:"prices"` // thousandths of a US dollar for a million tokens
}

//go:embed models.json
var embedded []byte

// catalog is models.json.
var catalog = func() *Catalog {
	var c Catalog
	if err := codec.UnmarshalStrict(embedded, &c); err != nil { //nolint:forbidigo // a table of this package, embedded
		panic(fmt.Sprintf("measure: embedded models.json: %v", err)) // a defect of the build
	}
	return &c
}()

// Windows are the windows of all sources.
func (c *Catalog) Windows() Windows {
	w := Windows{}
	for _, s := range c.Sources {
		w.join(s.Windows, func(_, now Tokens) Tokens { return now })
	}
	return w
}

// Prices are the prices of all sources.
func (c *Catalog) Prices() PriceTable {
	t := PriceTable{}
	for _, s := range c.Sources {
		maps.Copy(t, s.Prices)
	}
	return t
}
