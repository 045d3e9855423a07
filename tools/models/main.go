// Command models refreshes the windows and prices of models in internal/compaction/measure/models.json
// from the catalogue of https://models.dev.
//
//	go run ./tools/models                    # what `make models` runs
//	go run ./tools/models -from api.json     # from a file, or another URL
//
// It replaces the source of that name alone: entries of the file's other sources stay, and go before
// it. An entry that a shorter name of the file implies is left out. Review the difference before
// you commit it: a window that is too large loses a session.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/models"
)

const (
	file      = "internal/compaction/measure/models.json"
	catalogue = "https://models.dev/api.json"
	source    = "models.dev"
	router    = "openrouter"
)

func main() {
	from := flag.String("from", catalogue, "URL or file of the catalogue")
	root := flag.String("root", ".", "root of the repository")
	date := flag.String("date", time.Now().UTC().Format(time.DateOnly), "date of the catalogue")
	flag.Parse()
	if err := run(context.Background(), *root, *from, *date); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, from, date string) error {
	data, err := read(ctx, from)
	if err != nil {
		return err
	}
	var providers map[string]provider
	if err := json.Unmarshal(data, &providers); err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	path := filepath.Join(root, file)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var catalog measure.Catalog
	if err := json.Unmarshal(old, &catalog); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := refresh(&catalog, providers, date); err != nil {
		return err
	}
	out, err := write(&catalog)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o644)
}

// read returns what a URL or a file has.
func read(ctx context.Context, from string) ([]byte, error) {
	if !strings.Contains(from, "://") {
		return os.ReadFile(from)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", from, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// provider, model and cost are what the catalogue has of them: tokens, and US dollars for a million tokens.
type (
	provider struct {
		Models map[string]model `json:"models"`
	}
	model struct {
		Open  bool  `json:"open_weights"`
		Cost  *cost `json:"cost"`
		Limit struct {
			Context int64 `json:"context"`
		} `json:"limit"`
		Modalities struct {
			Output []string `json:"output"`
		} `json:"modalities"`
	}
	cost struct {
		Input  float64  `json:"input"`
		Output float64  `json:"output"`
		Cached *float64 `json:"cache_read"`
		Write  float64  `json:"cache_write"`
		Tiers  []struct {
			cost
			Tier struct {
				Size int64 `json:"size"`
			} `json:"tier"`
		} `json:"tiers"`
	}
)

// priced reports whether a token of a model's answer is one of text, and costs something.
func (m *model) priced() bool {
	return slices.Equal(m.Modalities.Output, []string{"text"}) && m.Cost != nil && m.Cost.Output > 0
}

// closed are the makers whose models have one window wherever they run; open the others, by the name
// that the catalogue has for their own service.
var (
	closed = []string{"anthropic", "google", "openai", "xai"}
	open   = map[string]string{
		"alibaba": "qwen", "cohere": "cohere", "deepseek": "deepseek", "minimax": "minimax", "mistral": "mistral", "moonshotai": "moonshot", "zai": "zhipu",
	}
)

// routedMakers are the makers whose open models the router sells, by its names.
var routedMakers = []string{"amazon", "cohere", "deepseek", "meta-llama", "minimax", "mistralai", "moonshotai", "nvidia", "qwen", "z-ai"}

// refresh puts with the models of providers in its source of that name.
func refresh(c *measure.Catalog, providers map[string]provider, date string) error {
	at := slices.IndexFunc(c.Sources, func(s measure.Source) bool { return s.Name == source })
	if at < 0 {
		return fmt.Errorf("%s has no source %s", file, source)
	}
	s := measure.Source{Name: source, Date: date, Windows: measure.Windows{}, Prices: measure.PriceTable{}}
	c.Sources[at] = s
	for _, name := range append(slices.Sorted(maps.Keys(open)), closed...) {
		all := providers[name].Models
		if len(all) == 0 {
			return fmt.Errorf("the catalogue has no models of %s", name)
		}
		for _, id := range byLength(all) {
			m := all[id]
			addPrice(c, s.Prices, id, &m)
			switch at, ok := open[name]; {
			case ok:
				addWindow(c, s.Windows, at, id, &m)
			case m.Open:
				addWindow(c, s.Windows, models.Provider(name), id, &m)
			default:
				addWindow(c, s.Windows, measure.Anywhere, models.Canonical(id), &m)
			}
		}
	}
	routed := providers[router].Models
	for _, id := range byLength(routed) {
		if maker, _, _ := strings.Cut(id, "/"); slices.Contains(routedMakers, maker) {
			m := routed[id]
			addWindow(c, s.Windows, router, id, &m)
		}
	}
	return nil
}

// byLength are names, the shorter first: they imply longer ones.
func byLength(all map[string]model) []string {
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
}

// addPrice adds the price of a model to a table of the catalog, where no shorter name implies it. A
// model without a price that a shorter name would give one has none by an entry of its own.
func addPrice(c *measure.Catalog, to measure.PriceTable, id string, m *model) {
	name := models.Canonical(id)
	all := c.Prices()
	if _, byHand := all[name]; byHand {
		return
	}
	now, known := all.Of(name)
	var p *measure.Prices
	if m.priced() {
		p = m.Cost.prices()
	}
	if p == nil && !known || p != nil && known && equal(*p, now) {
		return
	}
	to[name] = p
}

func equal(a, b measure.Prices) bool {
	la, lb := a.Long, b.Long
	a.Long, b.Long = nil, nil
	return a == b && (la == nil) == (lb == nil) && (la == nil || *la == *lb)
}

// prices are those of a token in billionths of a US dollar, with the first of the tiers.
func (c *cost) prices() *measure.Prices {
	input := nano(c.Input)
	p := &measure.Prices{Input: input, Cached: input, Write: max(input, nano(c.Write)), Output: nano(c.Output)}
	if c.Cached != nil && *c.Cached > 0 {
		p.Cached = nano(*c.Cached)
	}
	if len(c.Tiers) > 0 {
		t := c.Tiers[0]
		long := t.prices()
		p.Long = &measure.LongPrices{Over: measure.Tokens(t.Tier.Size), Input: long.Input, Cached: long.Cached, Write: long.Write, Output: long.Output}
	}
	return p
}

// nano is a price in billionths of a dollar a token, from dollars for a million tokens.
func nano(dollars float64) measure.Money { return measure.Money(math.Round(dollars * 1000)) }

// addWindow adds the window of a model to a table of the catalog, where no shorter name implies it.
func addWindow(c *measure.Catalog, to measure.Windows, provider, id string, m *model) {
	if m.Limit.Context == 0 || strings.Contains(id, "embed") || !slices.Contains(m.Modalities.Output, "text") {
		return
	}
	window, all := measure.Tokens(m.Limit.Context), c.Windows()
	_, byHand := all[provider][id]
	if t, known := all.Table().Lookup(provider, id); byHand || known && t == window {
		return
	}
	if to[provider] == nil {
		to[provider] = map[string]measure.Tokens{}
	}
	to[provider][id] = window
}

// write writes a catalog with a line for each entry.
func write(c *measure.Catalog) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\"sources\": [")
	for i, s := range c.Sources {
		head, err := json.Marshal(map[string]string{"name": s.Name, "date": s.Date})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s\n%s, \"windows\": {", sep(i), bytes.TrimSuffix(head, []byte("}")))
		for i, p := range slices.Sorted(maps.Keys(s.Windows)) {
			fmt.Fprintf(&b, "%s\n %q: {", sep(i), p)
			if err := lines(&b, s.Windows[p]); err != nil {
				return nil, err
			}
			b.WriteByte('}')
		}
		b.WriteString("},\n\"prices\": {")
		if err := lines(&b, s.Prices); err != nil {
			return nil, err
		}
		b.WriteString("}}")
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

func lines[T any](b *bytes.Buffer, all map[string]T) error {
	for i, k := range slices.Sorted(maps.Keys(all)) {
		v, err := json.Marshal(all[k])
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n  %q: %s", sep(i), k, v)
	}
	return nil
}

func sep(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}
