package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// serve makes a config of an OpenAI-compatible server.
func serve(t testing.TB, h http.Handler) provider.Config {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return provider.Config{Provider: provider.VLLM, Model: "m", Key: "k", BaseURL: s.URL, Attempts: 1}
}

// C5: real refusals of many providers, and what a caller receives for each.
func TestRefusals(t *testing.T) {
	datadriven.RunTest(t, "testdata/refusals.txt", func(t *testing.T, d *datadriven.TestData) string {
		var status int
		d.ScanArgs(t, "status", &status)
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, a := range d.CmdArgs {
				if name, ok := strings.CutPrefix(a.Key, "header-"); ok {
					w.Header().Set(name, strings.Join(a.Vals, ", "))
				}
			}
			w.WriteHeader(status)
			fmt.Fprint(w, d.Input)
		})
		_, err := open(t, serve(t, h)).Complete(t.Context(), model.Request{User: "q"})
		return err.Error() + retry(err) + "\n"
	})
}

func retry(err error) string {
	if e, ok := errors.AsType[*model.Error](err); ok && e.RetryAfter > 0 {
		return fmt.Sprintf("; retry after %s", e.RetryAfter)
	}
	return ""
}
