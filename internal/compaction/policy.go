package compaction

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"compactd/internal/events"
)

// RulesVersion changes whenever the same log and the same settings would be
// decided in another way. It is part of the hash of a [Config].
const RulesVersion = 3

// PPM is a share in parts per million. In JSON it is a decimal number, 0.8 for
// 800,000; more than six decimals are an error.
type PPM int64

// Policy says when and how far a session is compacted.
type Policy struct {
	// Enabled switches automatic compaction. Levels are told either way.
	Enabled bool `json:"enabled"`
	// Profile names the estimator, a key of Profiles.
	Profile string `json:"profile"`

	// WindowTokens takes the place of the table of windows; a turn that names a
	// smaller window has it. 0 leaves the table.
	WindowTokens Tokens `json:"window_tokens"`

	// By says what sets the trigger, one of ratio, tokens and buffer: the share
	// Trigger of the available input, the number TriggerTokens, or what is left of
	// the window after the distances in Buffers. Under tokens and buffer the other
	// shares keep their relation to Trigger.
	TriggerMode     string `json:"trigger_mode"`
	ThresholdTokens Tokens `json:"threshold_tokens"`

	// Trigger is the share of the available input at which compaction runs,
	// Target the share it aims for, Info the share at which level info begins.
	Threshold PPM `json:"threshold"`
	Target    PPM `json:"target"`
	Info      PPM `json:"info"`

	// Cap is a share of the available input that the trigger is never above,
	// whatever sets it: it only ever lowers.
	ThresholdCap PPM `json:"threshold_cap"`
	// LimitTokens is the hard limit, at most the available input; 0 leaves it where
	// By puts it. The trigger is never above it.
	LimitTokens Tokens       `json:"limit_tokens"`
	Buffers     BufferPolicy `json:"buffers"`

	// RecallNotice lets every placeholder say where its original is, for
	// compactd.recall.
	RecallNotice bool `json:"recall_notice"`

	Prune       PrunePolicy     `json:"prune"`
	Deduplicate DedupePolicy    `json:"deduplicate"`
	Summarize   SummarizePolicy `json:"summarize"`
	Truncate    TruncatePolicy  `json:"truncate"`
	ToolOutput  OutputPolicy    `json:"tool_output"`
	Restore     RestorePolicy   `json:"restore"`

	// Locked are the paths of fields that sessions cannot set, such as
	// summarize.enabled, or summarize for all of its fields.
	Locked []string `json:"locked,omitzero"`
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
	// Micro is the first step of the stage.
	Micro MicroPolicy `json:"micro"`
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

// Set returns the policy with the fields of a JSON object set, objects field by
// field, lists as a whole. It may not validate. Unknown and doubled fields, and
// wrong types, are errors.
func (p Policy) Set(object events.Raw) (Policy, error) {
	p.Prune.ProtectedTools = slices.Clone(p.Prune.ProtectedTools)
	p.Prune.Micro.Tools = slices.Clone(p.Prune.Micro.Tools)
	p.Locked = slices.Clone(p.Locked)
	if err := events.UnmarshalStrict(object, &p); err != nil {
		return p, fmt.Errorf("set policy: %w", err)
	}
	return p, nil
}

// With is Set for a policy that came over the wire: a result that does not
// validate is an error too, and the code of errors is bad_policy. Locked fields keep
// their values.
func (p Policy) With(object events.Raw) (Policy, error) {
	p, _, err := p.Over(object)
	return p, err
}

// Over is With, and lists the locked fields that the object would have changed. An
// object that does not fit the locked fields, and is valid without them, is ignored as
// a whole.
func (p Policy) Over(object events.Raw) (out Policy, ignored []string, err error) {
	sent, err := p.Set(object)
	if err != nil {
		return sent, nil, events.NewInvalid(events.CodeBadPolicy, "policy", "has an unknown or duplicate field, or one of the wrong type")
	}
	out, ignored = sent.restore(&p)
	if err := out.Validate(); err != nil {
		if len(ignored) > 0 && sent.valid() {
			return p, p.differences(&sent), nil
		}
		return out, nil, events.NewInvalid(events.CodeBadPolicy, "policy", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return out, ignored, nil
}

// At returns the policy with the trigger at a share of the available input, and
// what must be below it brought below: a target at or above it to three quarters
// of it, a preparation at or above it to the middle between the two.
func (p Policy) At(trigger PPM) Policy {
	p.TriggerMode, p.Threshold = modeRatio, trigger
	if p.Target >= p.Threshold {
		p.Target = p.Threshold * 3 / 4
	}
	p.Info = min(p.Info, p.Threshold)
	if p.Summarize.Prepare >= p.Threshold {
		p.Summarize.Prepare = (p.Target + p.Threshold) / 2
	}
	return p
}

// Validate returns every invalid field in one error, made by [errors.Join]: each
// begins with the path of its field, such as summarize.prepare, and a space.
func (p Policy) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	share := func(name string, v PPM) { check(0 < v && v <= million, "%s must be above 0 and at most 1", name) }
	_, known := Profiles[p.Profile]
	check(known, "profile must be one of blocks, current, default, seed")
	tokens := func(name string, v Tokens) {
		check(0 <= v && v <= events.MaxTokens, "%s must be between 0 and %d", name, int64(events.MaxTokens))
	}
	tokens("window_tokens", p.WindowTokens)
	check(p.TriggerMode == modeRatio || p.TriggerMode == modeTokens || p.TriggerMode == modeBuffer, "trigger_mode must be one of buffer, ratio, tokens")
	tokens("threshold_tokens", p.ThresholdTokens)
	check(p.TriggerMode != modeTokens || p.ThresholdTokens > 0, "threshold_tokens must be above 0 with trigger_mode tokens")
	share("threshold", p.Threshold)
	share("target", p.Target)
	share("info", p.Info)
	share("threshold_cap", p.ThresholdCap)
	tokens("limit_tokens", p.LimitTokens)
	check(p.Target < p.Threshold, "target must be below threshold")
	check(p.Info <= p.Threshold, "info must not be above threshold")
	share("deduplicate.minimum", p.Deduplicate.Minimum)
	share("truncate.fraction", p.Truncate.Fraction)
	share("summarize.prepare", p.Summarize.Prepare)
	share("summarize.ceiling_share", p.Summarize.CeilingShare)
	check(p.Summarize.Failures > 0, "summarize.failures must be above 0")
	check(0 <= p.Summarize.CooldownSeconds && p.Summarize.CooldownSeconds <= 1<<31, "summarize.cooldown_seconds must be between 0 and %d", 1<<31)
	tokens("prune.protect_tokens", p.Prune.ProtectTokens)
	tokens("prune.minimum_tokens", p.Prune.MinimumTokens)
	tokens("prune.scale_below", p.Prune.ScaleBelow)
	tokens("summarize.ceiling_tokens", p.Summarize.CeilingTokens)
	p.Buffers.validate(check)
	p.Prune.Micro.validate(check)
	errs = append(errs, p.ToolOutput.validate(), p.Restore.validate())
	for _, path := range p.Locked {
		check(slices.ContainsFunc(policyFields, func(f string) bool { return covers(path, f) }), "locked names %q, which is no field of the policy", path)
	}
	return errors.Join(errs...)
}

// scaled shrinks a number of tokens in proportion for small windows.
func (p PrunePolicy) scaled(n, window Tokens) Tokens {
	return scaled(n, window, p.ScaleBelow)
}

// scaled is n in the proportion of size to below where it is less, rounded down.
func scaled(n, size, below Tokens) Tokens {
	if size >= below {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(max(size, 0)))
	q, _ := bits.Div64(hi, lo, uint64(below))
	return Tokens(q)
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
	Tenants map[string]Policy // whole policies of tenants that have their own
	Windows Windows

	tenants map[string]*Policy // Tenants, to be shared by ledgers
	counter Counter            // nil estimates
	// retention is how long the log keeps an event, in milliseconds; forever for no
	// bound.
	retention int64
	text      []byte
	hash      string
}

// configText is the form in which a config is stored and hashed.
type configText struct {
	Rules   int               `json:"rules"`
	Counter string            `json:"counter"`
	Policy  Policy            `json:"policy"`
	Tenants map[string]Policy `json:"tenants,omitzero"`
	Windows Windows           `json:"windows"`
	// Retention is in seconds, -1 for no bound; absent is 30 days.
	Retention int64 `json:"retention_seconds,omitzero"`
}

// counterEstimate is the name of counting without a [Counter].
const counterEstimate = "estimate"

// NewConfig validates the policy and returns the config with its hash. Tokens are
// estimated, unless WithCounter names who counts them.
func NewConfig(p Policy, w Windows) (*Config, error) {
	return (&Config{Policy: p, Windows: w, retention: defaultRetention}).build()
}

// WithTenants returns the config with policies of tenants in place of its own.
// They are whole: what they take over from the config's policy stands in them.
func (c *Config) WithTenants(tenants map[string]Policy) (*Config, error) {
	out := *c
	out.Tenants = maps.Clone(tenants)
	return out.build()
}

// WithCounter returns the config with tokens counted by a counter, nil to
// estimate them. What a ledger holds already stays as it was counted.
func (c *Config) WithCounter(by Counter) (*Config, error) {
	out := *c
	out.counter = by
	return out.build()
}

// WithRetention returns the config for a log that keeps an event for so many
// seconds; 0 and less is for ever. [NewConfig] assumes 30 days.
func (c *Config) WithRetention(seconds int64) (*Config, error) {
	out := *c
	out.retention = forever
	if seconds > 0 && seconds < forever/1000 {
		out.retention = seconds * 1000
	}
	return out.build()
}

// seal validates the policies and adds text and hash.
func (c *Config) build() (*Config, error) {
	if err := c.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("validate policy: %w", err)
	}
	c.tenants = map[string]*Policy{}
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		p := c.Tenants[name]
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("validate policy of tenant %s: %w", name, err)
		}
		c.tenants[name] = &p
	}
	name := counterEstimate
	if c.counter != nil {
		name = c.counter.Name()
	}
	text, err := events.Marshal(configText{RulesVersion, name, c.Policy, c.Tenants, c.Windows, retentionText(c.retention)})
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	sum := sha256.Sum256(text)
	c.text, c.hash = text, hex.EncodeToString(sum[:8])
	return c, nil
}

// For is the policy of a tenant. It is not to be changed.
func (c *Config) For(tenant string) *Policy {
	if p, ok := c.tenants[tenant]; ok {
		return p
	}
	return &c.Policy
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
	c := &Config{Policy: t.Policy, Tenants: t.Tenants, Windows: t.Windows, retention: retentionOf(t.Retention)}
	if i >= 0 {
		c.counter = counters[i]
	}
	return c.build()
}

// Parse is [ParseConfig] for the text of another config, which may name the counter
// of this one.
func (c *Config) Parse(text []byte) (*Config, error) {
	if c.counter == nil {
		return ParseConfig(text)
	}
	return ParseConfig(text, c.counter)
}

// Hash names the config: 16 hexadecimal digits.
func (c *Config) Hash() string { return c.hash }

// Text is what the hash was made of, as JSON.
func (c *Config) Text() []byte { return c.text }
