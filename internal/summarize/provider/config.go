package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Secret is a key. Every way of printing it gives [redacted].
type Secret string

const redacted = "[redacted]"

// String implements [fmt.Stringer].
func (Secret) String() string { return redacted }

// GoString implements [fmt.GoStringer].
func (Secret) GoString() string { return redacted }

// MarshalText keeps a key out of JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Config is one provider and one of its models.
type Config struct {
	// Provider is one of [Names].
	Provider Name
	// Model is the provider's own name for it. It has to be set, but for Google,
	// where it is gemini-2.5-flash.
	Model string
	// BaseURL is where the API is; "" is the provider's own address, where it has
	// one. http:// is taken for loopback and private addresses only.
	BaseURL string
	// Key is the API key. Providers that run on one's own machines may do without.
	// Vertex AI takes Google's application default credentials instead, and
	// Bedrock, without a key, those that AWS's tools find.
	Key Secret
	// Project is that of Google Cloud, for Vertex AI.
	Project string
	// Location is the region of Bedrock, or that of Vertex AI: "global" by default.
	Location string

	// Window and MaxOutput are [model.Limits], in tokens; 0 is the usual value of the provider's models.
	// Ollama has no default: it cuts longer prompts silently.
	Window, MaxOutput int64

	// AttemptTimeout bounds one call, the whole answer included; 0 is 5 minutes.
	// Models have been seen to take 3 minutes for a summary.
	AttemptTimeout time.Duration
	// Timeout bounds all attempts and the pauses between them; 0 is 12 minutes.
	Timeout time.Duration
	// Attempts is the number of calls in all, 1 to 10; 0 is 3.
	Attempts int
	// Backoff is the pause before the second attempt; it doubles up to 30 s, ±50 %. A
	// pause that the provider requests comes on top. 0 is 1 s.
	Backoff time.Duration
	// PerMinute bounds the calls a minute of this process; 0 is no bound.
	PerMinute int

	// AllowAddresses are networks to allow although the check of addresses refuses
	// them: link-local ones, metadata services, and private ones behind a public name.
	AllowAddresses []netip.Prefix
	// Dial replaces dialing, and the check of addresses with it. It is for tests;
	// nil is the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// withDefaults fills what is not set. p has defaults of its own.
func (c Config) withDefaults(p preset) Config {
	c.Model = cmp.Or(c.Model, p.model)
	if p.project {
		c.Location = cmp.Or(c.Location, "global")
	}
	c.BaseURL = cmp.Or(c.BaseURL, p.base(c.Location))
	c.Window = cmp.Or(c.Window, p.limits.Window)
	c.MaxOutput = cmp.Or(c.MaxOutput, min(p.limits.MaxOutput, c.Window/2))
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, 5*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 12*time.Minute)
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	return c
}

// validate returns every invalid field in one error.
func (c *Config) validate(p preset) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("model provider %s: "+format, append([]any{c.Provider}, args...)...))
		}
	}
	check(validModel(c.Model), "model %q: name one, as in %s/<model>", c.Model, c.Provider)
	if c.BaseURL == "" {
		check(p.host != nil, "base URL: has to be set, as %sBASE_URL", c.Provider.prefix())
	} else if err := checkURL(c.BaseURL); err != nil {
		check(false, "base URL: %w", err)
	}
	check(c.Key != "" || p.keyless, "key: has to be set, as %sKEY_FILE or %[2]sKEY%[3]s", c.Provider.prefix(), orNames(p.keys))
	check(!strings.ContainsFunc(string(c.Key), notPrintable), "key: has characters that no header can carry")
	check(!p.project || c.Project != "", "project: has to be set, as %sPROJECT", c.Provider.prefix())
	check(p.host == nil || c.Location != "", "location: has to be set, as %sLOCATION", c.Provider.prefix())
	check(validName(c.Project) && validName(c.Location), "project and location: letters, digits and - only")
	check(c.Window >= minWindow, "window %d: at least %d tokens, set as %sWINDOW", c.Window, minWindow, c.Provider.prefix())
	check(c.Window < minWindow || c.MaxOutput > 0 && c.MaxOutput < c.Window, "max output %d: between 1 and the window", c.MaxOutput)
	check(c.AttemptTimeout > 0, "attempt timeout %s: must be positive", c.AttemptTimeout)
	check(c.Timeout >= c.AttemptTimeout, "timeout %s: shorter than that of one attempt", c.Timeout)
	check(c.Attempts > 0 && c.Attempts <= 10, "attempts %d: 1 to 10", c.Attempts)
	check(c.Backoff > 0, "backoff %s: must be positive", c.Backoff)
	check(c.PerMinute >= 0, "per minute %d: must not be negative", c.PerMinute)
	return errors.Join(errs...)
}

// minWindow holds the instructions for a summary, and as much again to summarize.
const minWindow = 8_192

// checkURL states what is wrong without quoting the address: it may hold a password.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("has to start with https:// or http://")
	case u.Hostname() == "":
		return errors.New("has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("has to be without user, query and fragment")
	}
	return nil
}

// validModel allows what providers use in names; they become parts of paths.
func validModel(s string) bool {
	return s != "" && len(s) <= 200 && !strings.Contains(s, "..") &&
		!strings.ContainsFunc(s, func(r rune) bool { return !nameRune(r) && !strings.ContainsRune("._:/@+", r) })
}

func validName(s string) bool {
	return len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool { return !nameRune(r) })
}

func nameRune(r rune) bool {
	return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }

// Names returns the possible values of [Config].Provider, sorted.
func Names() []Name { return slices.Sorted(maps.Keys(presets)) }

// orNames lists the variables of a provider's own, as the end of a sentence.
func orNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", or as " + strings.Join(names, " or ")
}
