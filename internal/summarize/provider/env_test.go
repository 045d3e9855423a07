package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/summarize/provider"
)

// C5: what lists and variables result in. Input is the environment; $KEYS is a
// directory with the files key, empty and spaces.
func TestOpen(t *testing.T) {
	keys := t.TempDir()
	for name, text := range map[string]string{"key": "  file-key\n", "empty": "\n", "spaces": "two words"} {
		if err := os.WriteFile(filepath.Join(keys, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	datadriven.RunTest(t, "testdata/env.txt", func(t *testing.T, d *datadriven.TestData) string {
		env := map[string]string{}
		for line := range strings.Lines(d.Input) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[name] = strings.ReplaceAll(value, "$KEYS", keys)
		}
		var list []string
		for _, a := range d.CmdArgs {
			list = append(list, a.String())
		}
		getenv := func(name string) string { return env[name] }
		models, err := provider.Open(strings.Join(list, " "), getenv)
		if err != nil {
			return strings.ReplaceAll(err.Error(), keys, "$KEYS") + "\n"
		}
		configs, err := provider.FromEnv(strings.Join(list, " "), getenv)
		if err != nil || len(configs) != len(models) {
			t.Fatalf("%d configs, %v", len(configs), err)
		}
		var out strings.Builder
		for i, m := range models {
			c := configs[i]
			fmt.Fprintf(&out, "%s window=%d output=%d key=%q", m.Name(), m.Limits().Window, m.Limits().MaxOutput, []byte(c.Key))
			fmt.Fprintf(&out, " url=%q place=%q/%q per_minute=%d attempts=%d timeouts=%s,%s allow=%v\n",
				c.BaseURL, c.Project, c.Location, c.PerMinute, c.Attempts, c.AttemptTimeout, c.Timeout, c.AllowAddresses)
		}
		if len(models) == 0 {
			return "no models\n"
		}
		return out.String()
	})
}

// Every invalid field is reported at once, and no value is quoted that may be a key.
func TestNewReportsEveryField(t *testing.T) {
	_, err := provider.New(provider.Config{
		Provider: provider.Vertex, Model: "a model", BaseURL: "ftp://user:canary@h", Key: "can\nary", Location: "x/y",
		Window: 5, MaxOutput: 9, AttemptTimeout: -1, Timeout: -2, Attempts: 11, Backoff: -1, PerMinute: -1,
	})
	got := strings.Split(err.Error(), "\n")
	if len(got) != 11 || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "can\nary") {
		t.Errorf("%d problems: %v", len(got), err)
	}
	if _, err = provider.New(provider.Config{Provider: "gpt"}); err == nil || !strings.Contains(err.Error(), "one of anthropic, ") {
		t.Error(err)
	}
}
