package compaction

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events"
)

// RulesVersion changes whenever the same log and the same settings would be
// decided in another way. It is part of the hash of a [Config].
const RulesVersion = 1

// PPM is a share in parts per million. In JSON it is a decimal number, 0.8 for
// 800,000; more than six decimals are an error.
type PPM int64

// Policy says when and how far a session is compacted.
type Policy struct {
	// Enabled switches automatic compaction. Levels are told either way.
	Enabled bool `json:"enabled"`
	// Profile names the estimator, a key of Profiles.
	Profile string `json:"profile"`

	// By says what sets the trigger, one of ratio, tokens and buffer: the share
	// Trigger of the available input, the number TriggerTokens, or what is left of
	// the window after an output reserve of at most 20,000 tokens and a buffer of
	// 13,000. Under tokens and buffer the other shares keep their relation to
	// Trigger.
	By            string `json:"trigger"`
	TriggerTokens Tokens `json:"threshold_tokens"`

	// Trigger is the share of the available input at which compaction runs,
	// Target the share it aims for, Info the share at which level info begins.
	Trigger PPM `json:"threshold"`
	Target  PPM `json:"target"`
	Info    PPM `json:"info"`

	Prune       PrunePolicy     `json:"prune"`
	Deduplicate DedupePolicy    `json:"deduplicate"`
	Summarize   SummarizePolicy `json:"summarize"`
	Truncate    TruncatePolicy  `json:"truncate"`
	Output      OutputPolicy    `json:"tool_output"`
	Restore     RestorePolicy   `json:"restore"`
}

// PrunePolicy is the policy of the first stage.
type PrunePolicy struct {
	Enabled bool `json:"enabled"`
	// ProtectTokens of the newest results stay whole; MinimumTokens is the least
	// that clearing must save. Both hold for windows of ScaleBelow tokens and
	// more and shrink in proportion below; 0 never shrinks them.
	ProtectTokens Tokens `json:"protect_tokens"`
	MinimumTokens Tokens `json:"minimum_tokens"`
	ScaleBelow    Tokens `json:"scale_below"`
	// ProtectedTools are tools whose results are never cleared.
	ProtectedTools []string `json:"protected_tools"`
}

// DedupePolicy is the policy of the second stage.
type DedupePolicy struct {
	Enabled bool `json:"enabled"`
	// Minimum is the least share of the touched reads that must be saved.
	Minimum PPM `json:"minimum"`
}

// SummarizePolicy is the policy of the third stage. While it is enabled, the last
// stage runs only when the available input is used up, or when summaries fail.
type SummarizePolicy struct {
	Enabled bool `json:"enabled"`
	// Prepare is the share of the available input at which a summary is asked for
	// in the background. At or above the threshold none is prepared.
	Prepare PPM `json:"prepare"`
	// A summary, its record included, costs at most CeilingTokens, and at most
	// CeilingShare of the available input.
	CeilingTokens Tokens `json:"ceiling_tokens"`
	CeilingShare  PPM    `json:"ceiling_share"`
	// After so many Failures in a row, or so many compactions in a row that did
	// not get below the threshold, no summary is asked for during
	// CooldownSeconds of the log's time.
	Failures        int64 `json:"failures"`
	CooldownSeconds int64 `json:"cooldown_seconds"`
}

// TruncatePolicy is the policy of the last stage.
type TruncatePolicy struct {
	Enabled bool `json:"enabled"`
	// Fraction of the messages after the first exchange is cut when no cut fits.
	Fraction PPM `json:"fraction"`
}

// DefaultPolicy is the preset "default".
func DefaultPolicy() Policy {
	return Policy{
		Enabled: true,
		Profile: "default",
		By:      byRatio,
		Trigger: 800_000,
		Target:  600_000,
		Info:    600_000,
		Prune: PrunePolicy{
			Enabled: true, ProtectTokens: 40_000, MinimumTokens: 20_000, ScaleBelow: 200_000,
			ProtectedTools: []string{"skill"},
		},
		Deduplicate: DedupePolicy{Enabled: true, Minimum: 300_000},
		Summarize: SummarizePolicy{
			Enabled: true, Prepare: 700_000, CeilingTokens: 20_000, CeilingShare: 100_000, Failures: 3, CooldownSeconds: 1800,
		},
		Truncate: TruncatePolicy{Enabled: true, Fraction: 500_000},
		Output:   defaultOutput(),
		Restore:  defaultRestore(),
	}
}

// With returns the policy with the fields of a JSON object set. Unknown fields
// are errors, as is a result that does not validate; the code is bad_policy.
func (p Policy) With(object events.Raw) (Policy, error) {
	p.Prune.ProtectedTools = append([]string(nil), p.Prune.ProtectedTools...)
	if err := events.UnmarshalStrict(object, &p); err != nil {
		return p, events.NewInvalid(events.CodeBadPolicy, "policy", "has an unknown or duplicate field, or one of the wrong type")
	}
	if err := p.Validate(); err != nil {
		return p, events.NewInvalid(events.CodeBadPolicy, "policy", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return p, nil
}

// Validate returns every invalid field in one error.
func (p Policy) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	share := func(name string, v PPM) { check(0 < v && v <= million, "%s must be above 0 and at most 1", name) }
	_, known := Profiles[p.Profile]
	check(known, "profile is none of blocks, current, default, seed")
	check(p.By == byRatio || p.By == byTokens || p.By == byBuffer, "trigger is none of ratio, tokens, buffer")
	check(0 <= p.TriggerTokens && p.TriggerTokens <= events.MaxTokens, "threshold_tokens must be between 0 and %d", int64(events.MaxTokens))
	check(p.By != byTokens || p.TriggerTokens > 0, "threshold_tokens must be above 0 with trigger tokens")
	share("threshold", p.Trigger)
	share("target", p.Target)
	share("info", p.Info)
	check(p.Target < p.Trigger, "target must be below threshold")
	check(p.Info <= p.Trigger, "info must not be above threshold")
	share("deduplicate.minimum", p.Deduplicate.Minimum)
	share("truncate.fraction", p.Truncate.Fraction)
	share("summarize.prepare", p.Summarize.Prepare)
	share("summarize.ceiling_share", p.Summarize.CeilingShare)
	check(p.Summarize.Failures > 0, "summarize.failures must be above 0")
	check(0 <= p.Summarize.CooldownSeconds && p.Summarize.CooldownSeconds <= 1<<31, "summarize.cooldown_seconds must be between 0 and %d", 1<<31)
	tokens := func(name string, v Tokens) {
		check(0 <= v && v <= events.MaxTokens, "%s must be between 0 and %d", name, int64(events.MaxTokens))
	}
	tokens("prune.protect_tokens", p.Prune.ProtectTokens)
	tokens("prune.minimum_tokens", p.Prune.MinimumTokens)
	tokens("prune.scale_below", p.Prune.ScaleBelow)
	tokens("summarize.ceiling_tokens", p.Summarize.CeilingTokens)
	errs = append(errs, p.Output.validate(), p.Restore.validate())
	return errors.Join(errs...)
}

// scaled shrinks a number of tokens in proportion for small windows.
func (p PrunePolicy) scaled(n, window Tokens) Tokens {
	if window >= p.ScaleBelow {
		return n
	}
	return n * window / p.ScaleBelow
}

// MarshalJSON writes a decimal.
func (p PPM) MarshalJSON() ([]byte, error) {
	s := fmt.Sprintf("%d.%06d", p/million, p%million)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".")), nil
}

// UnmarshalJSON reads a decimal between 0 and 1,000 exactly.
func (p *PPM) UnmarshalJSON(data []byte) error {
	whole, frac, _ := strings.Cut(string(data), ".")
	if len(whole) == 0 || len(whole) > 3 || len(frac) > 6 {
		return errors.New("must be a decimal of at most six places, such as 0.8")
	}
	var n int64
	for _, c := range whole + frac + strings.Repeat("0", 6-len(frac)) {
		if c < '0' || c > '9' {
			return errors.New("must be a decimal of at most six places, such as 0.8")
		}
		n = n*10 + int64(c-'0')
	}
	*p = PPM(n)
	return nil
}

// Config is all that a decision depends on beside the log. It is immutable.
type Config struct {
	Policy  Policy
	Windows Windows

	counter Counter // nil estimates
	text    []byte
	hash    string
}

// configText is the form in which a config is stored and hashed.
type configText struct {
	Rules   int     `json:"rules"`
	Counter string  `json:"counter"`
	Policy  Policy  `json:"policy"`
	Windows Windows `json:"windows"`
}

// counterEstimate is the name of counting without a [Counter].
const counterEstimate = "estimate"

// NewConfig validates the policy and returns the config with its hash. Tokens are
// estimated, unless WithCounter names who counts them.
func NewConfig(p Policy, w Windows) (*Config, error) { return newConfig(p, w, nil) }

// WithCounter returns the config with tokens counted by a counter, nil to
// estimate them. What a ledger holds already stays as it was counted.
func (c *Config) WithCounter(by Counter) (*Config, error) { return newConfig(c.Policy, c.Windows, by) }

func newConfig(p Policy, w Windows, by Counter) (*Config, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("validate policy: %w", err)
	}
	name := counterEstimate
	if by != nil {
		name = by.Name()
	}
	text, err := events.Marshal(configText{RulesVersion, name, p, w})
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	sum := sha256.Sum256(text)
	return &Config{Policy: p, Windows: w, counter: by, text: text, hash: hex.EncodeToString(sum[:8])}, nil
}

// ParseConfig reads the text of a stored config, which may name one of the given
// counters. It refuses another counter, and rules of another version: this binary
// would decide otherwise.
func ParseConfig(text []byte, counters ...Counter) (*Config, error) {
	var t configText
	if err := events.UnmarshalStrict(text, &t); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	i := slices.IndexFunc(counters, func(c Counter) bool { return c.Name() == t.Counter })
	if t.Rules != RulesVersion || t.Counter != counterEstimate && i < 0 {
		return nil, fmt.Errorf("read config: rules %d with counter %q; this binary has rules %d, and no counter of another name than it was given",
			t.Rules, t.Counter, RulesVersion)
	}
	var by Counter
	if i >= 0 {
		by = counters[i]
	}
	return newConfig(t.Policy, t.Windows, by)
}

// Hash names the config: 16 hexadecimal digits.
func (c *Config) Hash() string { return c.hash }

// Text is what the hash was made of, as JSON.
func (c *Config) Text() []byte { return c.text }
