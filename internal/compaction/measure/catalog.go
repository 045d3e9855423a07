package measure

import (
	_ "embed"
	"fmt"
	"maps"
	"sync"

	"compactd/internal/events"
)

// Catalog is models.json: the context windows and list prices of models, by source. `make models`
// refreshes the source models.dev.
type Catalog struct {
	Sources []Source `json:"sources"` // a later one goes before an earlier one
}

// Source is the windows and prices that were read at a place, on a date.
type Source struct {
	Name    string     `json:"name"`
	Date    string     `json:"date"`
	Windows Windows    `json:"windows"`
	Prices  PriceTable `json:"prices"` // thousandths of a US dollar for a million tokens
}

//go:embed models.json
var embedded []byte

// catalog is models.json, read once.
var catalog = sync.OnceValue(func() *Catalog {
	var c Catalog
	if err := events.UnmarshalStrict(embedded, &c); err != nil { //nolint:forbidigo // a table of this package, embedded
		panic(fmt.Sprintf("compaction: embedded models.json: %v", err)) // a defect of the build
	}
	return &c
})

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
