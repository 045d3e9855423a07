package compaction

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/weigh"
)

// RulesVersion changes with every change of decisions about the same log and settings. It is part of the hash
// of a [Config].
const RulesVersion = 13

// Config has everything that a decision depends on beside the log. It is immutable.
type Config struct {
	Policy  policy.Policy
	Tenants map[string]policy.Policy // whole policies of tenants that have their own
	Windows measure.Windows
	Prices  measure.PriceTable // of models, for the costs and savings of a compaction

	tenants map[string]*policy.Policy // Tenants, to be shared by ledgers
	table   measure.Table             // of Windows
	largest measure.Tokens            // of Windows: the largest input of any model
	counter weigh.Counter             // nil estimates
	// retention is the time for which the log keeps an event, in milliseconds; forever if it has no bound.
	retention int64
	text      []byte
	hash      string
}

// ConfigText is the form in which a config is stored and hashed.
type ConfigText struct {
	Rules   int                      `json:"rules"`
	Counter string                   `json:"counter"`
	Policy  policy.Policy            `json:"policy"`
	Tenants map[string]policy.Policy `json:"tenants,omitzero"`
	Windows measure.Windows          `json:"windows"`
	Prices  measure.PriceTable       `json:"prices,omitzero"`
	// Retention is in seconds, -1 for no bound; absent is 30 days.
	Retention int64 `json:"retention_seconds,omitzero"`
}

// counterEstimate is the name of counting without a [weigh.Counter].
const counterEstimate = "estimate"

// NewConfig validates the policy and returns the config with its hash. Tokens are estimated; see
// [Config.WithCounter].
func NewConfig(p policy.Policy, w measure.Windows) (*Config, error) {
	return (&Config{Policy: p, Windows: w, Prices: measure.DefaultPrices(), retention: defaultRetention}).build()
}

// WithPolicy returns the config with another policy, for all tenants.
func (c *Config) WithPolicy(p policy.Policy) (*Config, error) {
	out := *c
	out.Policy, out.Tenants = p, nil
	return out.build()
}

// WithTenants returns the config with the given policies of tenants. Each is whole: it includes the fields
// taken over from the config's policy.
func (c *Config) WithTenants(tenants map[string]policy.Policy) (*Config, error) {
	out := *c
	out.Tenants = maps.Clone(tenants)
	return out.build()
}

// WithCounter returns the config with a counter of tokens, nil to estimate them. Entries of a ledger keep
// their counts.
func (c *Config) WithCounter(by weigh.Counter) (*Config, error) {
	out := *c
	out.counter = by
	return out.build()
}

// WithRetention returns the config for a log that keeps an event for so many seconds; 0 and less is for ever.
// [NewConfig] assumes 30 days.
func (c *Config) WithRetention(seconds int64) (*Config, error) {
	out := *c
	out.retention = forever
	if seconds > 0 && seconds < forever/1000 {
		out.retention = seconds * 1000
	}
	return out.build()
}

// WithPrices returns the config with prices added, in place of those of the same models.
func (c *Config) WithPrices(over measure.PriceTable) (*Config, error) {
	out := *c
	var err error
	if out.Prices, err = c.Prices.With(over); err != nil {
		return nil, err
	}
	return out.build()
}

// build validates the policies and adds text and hash.
func (c *Config) build() (*Config, error) {
	if err := c.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("validate policy: %w", err)
	}
	c.tenants = map[string]*policy.Policy{}
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		p := c.Tenants[name]
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("validate policy of tenant %s: %w", name, err)
		}
		c.tenants[name] = &p
	}
	c.table, c.largest = c.Windows.Table(), c.Windows.Largest()
	name := counterEstimate
	if c.counter != nil {
		name = c.counter.Name()
	}
	text, err := codec.Marshal(ConfigText{RulesVersion, name, c.Policy, c.Tenants, c.Windows, c.Prices, retentionText(c.retention)})
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	sum := sha256.Sum256(text)
	c.text, c.hash = text, hex.EncodeToString(sum[:8])
	return c, nil
}

// For is the policy of a tenant. Callers must not change it.
func (c *Config) For(tenant string) *policy.Policy {
	if p, ok := c.tenants[tenant]; ok {
		return p
	}
	return &c.Policy
}

// ConfigOf returns the config of a text, which may name one of the given counters. It refuses other counters
// and rules of other versions: this binary would decide differently.
func ConfigOf(t *ConfigText, counters ...weigh.Counter) (*Config, error) {
	i := slices.IndexFunc(counters, func(c weigh.Counter) bool { return c.Name() == t.Counter })
	if t.Rules != RulesVersion || t.Counter != counterEstimate && i < 0 {
		return nil, fmt.Errorf("read config: rules %d with counter %q; this binary has rules %d, and only the counters that it was given",
			t.Rules, t.Counter, RulesVersion)
	}
	c := &Config{Policy: t.Policy, Tenants: t.Tenants, Windows: t.Windows, Prices: t.Prices, retention: retentionOf(t.Retention)}
	if i >= 0 {
		c.counter = counters[i]
	}
	return c.build()
}

// Counters is the counter of the config, empty if it estimates.
func (c *Config) Counters() []weigh.Counter {
	if c.counter == nil {
		return nil
	}
	return []weigh.Counter{c.counter}
}

// Hash names the config: 16 hexadecimal digits.
func (c *Config) Hash() string { return c.hash }

// Text is the hashed text, as JSON.
func (c *Config) Text() []byte { return c.text }

// fits returns an error about a field if the longest answer of the model exceeds its window; nil is no model.
func (c *Config) fits(field string, m *events.Model, p *policy.Policy) error {
	if m == nil || m.MaxOutputTokens == 0 {
		return nil
	}
	return fits(field, m, c.windowOf(m, p))
}

func fits(field string, m *events.Model, window measure.Tokens) error {
	if m.MaxOutputTokens >= int64(window) {
		return events.NewInvalid(events.CodeOutOfRange, field, fmt.Sprintf("must be less than the context window, %d", window))
	}
	return nil
}

// windowOf returns the window of a model: the smaller of the windows that turn and policy state, else the one
// in the table.
func (c *Config) windowOf(m *events.Model, p *policy.Policy) measure.Tokens {
	stated := measure.Tokens(m.ContextWindow)
	switch {
	case stated > 0 && p.WindowTokens > 0:
		return min(stated, p.WindowTokens)
	case stated+p.WindowTokens > 0:
		return stated + p.WindowTokens
	default:
		return c.table.Window(m.Provider, m.Name)
	}
}

// UnknownModel explains that the window of a model is a guess: neither a table nor the model nor the
// session's policy has it. It is "" for any other model.
func (c *Config) UnknownModel(tenant string, override codec.Raw, m *events.Model) string {
	return c.unknownModel(m, c.session(tenant, override))
}

// Reserved returns the model, without its longest answer if that leaves no room in the window: SDKs send the
// value of a larger model.
func (c *Config) Reserved(tenant string, override codec.Raw, m *events.Model) *events.Model {
	if m == nil || c.fits("", m, c.session(tenant, override)) == nil {
		return m
	}
	whole := *m
	whole.MaxOutputTokens = 0
	return &whole
}

// session is the policy of a tenant with the overrides of a session.
func (c *Config) session(tenant string, override codec.Raw) *policy.Policy {
	p := c.For(tenant)
	if with, err := p.With(override); override != nil && err == nil {
		p = &with
	}
	return p
}

func (c *Config) unknownModel(m *events.Model, p *policy.Policy) string {
	if m.ContextWindow > 0 || p.WindowTokens > 0 {
		return ""
	}
	window, known := c.table.Lookup(m.Provider, m.Name)
	if known {
		return ""
	}
	text := fmt.Sprintf("%s is in no table of models", strings.TrimPrefix(m.Provider+"/"+m.Name, "/"))
	if m.Name == "" {
		text = "The session names no model"
	}
	text += fmt.Sprintf("; its window is taken to be %d tokens.", window)
	if near := c.table.Nearest(m.Provider, m.Name); near != "" {
		text += " The nearest known name is " + near + "."
	}
	return text
}

func retentionText(ms int64) int64 {
	switch ms {
	case defaultRetention:
		return 0
	case forever:
		return -1
	default:
		return ms / 1000
	}
}

func retentionOf(seconds int64) int64 {
	switch {
	case seconds == 0:
		return defaultRetention
	case seconds < 0 || seconds >= forever/1000:
		return forever
	default:
		return seconds * 1000
	}
}
