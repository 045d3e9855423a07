package provider

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"compactd/internal/summarize/model"
)

// Embedded stands in a list for the summarizer that needs no model. It is the
// last resort of every list, named or not.
const Embedded = "embedded"

// Open makes the models of a list, in order: "provider/model", joined by commas,
// such as "anthropic/claude-haiku-4-5,ollama/llama3.3". A provider with a default
// model may stand alone. No models are no error: "" and "embedded" ask for none.
//
// A provider's settings are read by getenv, such as [os.Getenv], from
// COMPACTD_<PROVIDER>_ and KEY_FILE or KEY, BASE_URL, WINDOW, MAX_OUTPUT, TIMEOUT,
// ATTEMPT_TIMEOUT, ATTEMPTS, PER_MINUTE, ALLOW_ADDRESSES, PROJECT and LOCATION: the
// fields of [Config]. Without a key there, the variable is tried that the
// provider's own tools read. The error joins everything that is wrong.
func Open(list string, getenv func(string) string) ([]model.Model, error) {
	configs, err := FromEnv(list, getenv)
	errs := []error{err}
	var models []model.Model
	for _, c := range configs {
		m, err := New(c)
		models, errs = append(models, m), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return models, nil
}

// FromEnv is the configs that [Open] makes models of. Configs without an error are
// returned beside the error.
func FromEnv(list string, getenv func(string) string) ([]Config, error) {
	var configs []Config
	var errs []error
	items := strings.Split(list, ",")
	for i, item := range items {
		item = strings.TrimSpace(item)
		switch {
		case item == "" && len(items) == 1, item == Embedded && i == len(items)-1:
		case item == Embedded:
			errs = append(errs, errors.New("embedded never fails: name it last"))
		default:
			c, err := fromEnv(item, getenv)
			if err != nil {
				errs = append(errs, err)
			} else {
				configs = append(configs, c)
			}
		}
	}
	return configs, errors.Join(errs...)
}

func fromEnv(item string, getenv func(string) string) (Config, error) {
	provider, name, _ := strings.Cut(item, "/") // names of models may hold slashes too
	c := Config{Provider: Name(provider), Model: name}
	p, ok := presets[c.Provider]
	if !ok {
		return c, fmt.Errorf("unknown provider %q: one of %s, %s", provider, Embedded, names())
	}
	v := variables{prefix: c.Provider.prefix(), getenv: getenv}
	c.Key = v.key(p.keys)
	c.BaseURL = v.get("BASE_URL")
	if c.Provider == Google && c.Key == "" && c.BaseURL == "" && getenv(googleProject) != "" {
		c.Provider = Vertex // the Google credentials that are present are those of the cloud
		p = presets[Vertex]
	}
	if p.project {
		c.Project = v.first("PROJECT", googleProject)
	}
	c.Location = v.first("LOCATION", p.places...)
	c.Window, c.MaxOutput = v.number("WINDOW"), v.number("MAX_OUTPUT")
	c.Attempts, c.PerMinute = int(v.number("ATTEMPTS")), int(v.number("PER_MINUTE"))
	c.Timeout, c.AttemptTimeout = v.duration("TIMEOUT"), v.duration("ATTEMPT_TIMEOUT")
	c.AllowAddresses = v.prefixes("ALLOW_ADDRESSES")
	return c, errors.Join(v.errs...)
}

// prefix begins the names of a provider's variables.
func (n Name) prefix() string {
	return "COMPACTD_" + strings.ToUpper(strings.ReplaceAll(string(n), "-", "_")) + "_"
}

const googleProject = "GOOGLE_CLOUD_PROJECT"

// variables reads the variables of one provider.
type variables struct {
	prefix string
	getenv func(string) string
	errs   []error
}

func (v *variables) get(name string) string { return strings.TrimSpace(v.getenv(v.prefix + name)) }

// first is our variable, or the first of others that is set.
func (v *variables) first(name string, others ...string) string {
	s := v.get(name)
	for _, o := range others {
		s = cmp.Or(s, strings.TrimSpace(v.getenv(o)))
	}
	return s
}

// fail never quotes a value: it may be a key in the wrong place.
func (v *variables) fail(name, format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("%s%s: "+format, append([]any{v.prefix, name}, args...)...))
}

func (v *variables) number(name string) int64 {
	s := v.get(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n <= 0 {
		v.fail(name, "has to be a number above 0")
	}
	return n
}

func (v *variables) duration(name string) time.Duration {
	s := v.get(name)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		v.fail(name, "has to be a time such as 90s or 5m")
	}
	return d
}

func (v *variables) prefixes(name string) []netip.Prefix {
	var all []netip.Prefix
	for s := range strings.FieldsFuncSeq(v.get(name), func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			v.fail(name, "has to be networks such as 169.254.0.0/16, joined by commas")
			return nil
		}
		all = append(all, p)
	}
	return all
}

// key takes the first that is set: our file, our variable, the provider's own ones.
func (v *variables) key(names []string) Secret {
	file, key := v.get("KEY_FILE"), v.get("KEY")
	switch {
	case file != "" && key != "":
		v.fail("KEY", "and %sKEY_FILE are both set", v.prefix)
	case file != "":
		s, err := readKey(file)
		if err != nil {
			v.fail("KEY_FILE", "%w", err)
		}
		return s
	}
	return Secret(v.first("KEY", names...))
}

// maxKeyFile is more than any key has; a wrong file is not read whole.
const maxKeyFile = 64 << 10

func readKey(path string) (Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", fmt.Errorf("read key: %s is empty", path)
	}
	return Secret(key), nil
}
