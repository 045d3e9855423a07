package provider_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
)

func kind(err error) model.Kind {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e.Kind
	}
	return ""
}

func open(t testing.TB, c provider.Config) model.Model {
	t.Helper()
	m, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var dialects = []summarizetest.Dialect{summarizetest.OpenAI, summarizetest.Anthropic, summarizetest.Google}

// Hostile actors: the variables that the providers' SDKs read are not read here, and
// no key is logged.
func TestEnvironmentIsNotRead(t *testing.T) {
	var logged strings.Builder
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, "http://192.0.2.1:9/")
	}
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, "another-key")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer another-key")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: another-key")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	s := summarizetest.Start(t, nil)
	for _, d := range dialects {
		if _, err := open(t, s.Config(d)).Complete(t.Context(), model.Request{User: "q"}); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	for _, p := range s.Prompts() {
		if p.Key != summarizetest.Key {
			t.Errorf("%s sent the key %q", p.Dialect, p.Key)
		}
	}
	if strings.Contains(logged.String(), "key-") {
		t.Errorf("logged: %s", &logged)
	}
}

// A caller can keep calls a minute within what a plan allows; who would wait
// longer than the time-out is reported at once.
func TestPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := summarizetest.StartPipe(t, nil)
		c := s.Config(summarizetest.OpenAI)
		c.PerMinute, c.AttemptTimeout, c.Timeout = 6, time.Second, 15*time.Second
		m, began := open(t, c), time.Now()
		for range 4 {
			if _, err := m.Complete(t.Context(), model.Request{User: "q"}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("4 calls at 6 a minute took %s", took)
		}
		waiting := make(chan error, 3)
		for range cap(waiting) {
			go func() {
				_, err := m.Complete(t.Context(), model.Request{User: "q"})
				waiting <- err
			}()
		}
		limited := 0
		for range cap(waiting) {
			if kind(<-waiting) == model.RateLimited {
				limited++
			}
		}
		if limited != 2 {
			t.Errorf("%d of 3 were deferred, want 2: the next is free in 10 s, the one after in 20", limited)
		}
	})
}

// A provider that is down is not waited for, and calls that were not made do not
// speak for it.
func TestPerMinuteWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := summarizetest.StartPipe(t, nil)
		s.Script(summarizetest.ServerError)
		c := s.Config(summarizetest.Anthropic)
		c.PerMinute, c.Attempts = 1, 1
		m := open(t, c)
		for range 5 {
			_, _ = m.Complete(t.Context(), model.Request{User: "q"})
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := m.Complete(short, model.Request{User: "q"}); err == nil {
				t.Error("a call within the minute")
			}
			cancel()
		}
		began := time.Now()
		_, err := m.Complete(t.Context(), model.Request{User: "q"})
		if kind(err) != model.CircuitOpen || time.Since(began) > 0 || s.Calls() != 5 {
			t.Errorf("%v after %s and %d calls", err, time.Since(began), s.Calls())
		}
		if !strings.Contains(err.Error(), "model circuit_open: after model unavailable (HTTP 500)") {
			t.Errorf("it does not say why: %v", err)
		}
	})
}

// A wish that cannot be granted within the time-out is handed to the caller at
// once: the next provider, or the job's own delay, is better than waiting.
func TestLongRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range dialects {
			s := summarizetest.StartPipe(t, nil)
			s.RetryAfter = time.Hour
			s.Script(summarizetest.RateLimited)
			began := time.Now()
			_, err := open(t, s.Config(d)).Complete(t.Context(), model.Request{User: "q"})
			e, _ := errors.AsType[*model.Error](err)
			if kind(err) != model.RateLimited || e.RetryAfter != time.Hour || s.Calls() != 1 || time.Since(began) > 0 {
				t.Errorf("%s: %v after %d calls and %s", d, err, s.Calls(), time.Since(began))
			}
		}
	})
}

// The time-out bounds everything, whatever attempts are left.
func TestTimeoutInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := summarizetest.StartPipe(t, nil)
		s.Script(summarizetest.Hang)
		c := s.Config(summarizetest.Anthropic)
		c.AttemptTimeout, c.Timeout, c.Attempts = time.Minute, 90*time.Second, 10
		began := time.Now()
		_, err := open(t, c).Complete(t.Context(), model.Request{User: "q"})
		if took := time.Since(began); kind(err) != model.Timeout || took != 90*time.Second || s.Calls() != 2 {
			t.Errorf("%v after %d calls and %s", err, s.Calls(), took)
		}
	})
}

// A deadline of the caller is the caller's error, as a cancellation is.
func TestCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := summarizetest.StartPipe(t, nil)
		s.Script(summarizetest.Hang)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := open(t, s.Config(summarizetest.Google)).Complete(ctx, model.Request{User: "q"}); !errors.Is(err, context.DeadlineExceeded) || kind(err) != "" {
			t.Error(err)
		}
	})
}

// Hostile actors: a base URL that leads inside, or a key over http to the outside,
// is refused when it is dialed. Nothing is sent, and nothing is tried again.
func TestAddressesAreChecked(t *testing.T) {
	for _, host := range []string{
		"169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]",
		"100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0", "224.0.0.1", "192.0.2.1", "[2001:db8::1]",
	} {
		c := provider.Config{Provider: provider.OpenAI, Model: "m", Key: "k", BaseURL: "http://" + host + "/v1"}
		_, err := open(t, c).Complete(t.Context(), model.Request{User: "q"})
		if kind(err) != model.Invalid || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// An operator who means it can allow an address: 0.0.0.0 leads to this machine.
func TestAllowedAddresses(t *testing.T) {
	s := summarizetest.Start(t, nil)
	c := s.Config(summarizetest.OpenAI)
	c.BaseURL = strings.Replace(c.BaseURL, "127.0.0.1", "0.0.0.0", 1)
	if _, err := open(t, c).Complete(t.Context(), model.Request{User: "q"}); kind(err) != model.Invalid || s.Calls() != 0 {
		t.Errorf("not allowed: %v after %d calls", err, s.Calls())
	}
	c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}
	if _, err := open(t, c).Complete(t.Context(), model.Request{User: "q"}); err != nil || s.Calls() != 1 {
		t.Errorf("allowed: %v after %d calls", err, s.Calls())
	}
}

// A server that contains nothing but numbers cannot overflow a quota.
func TestUsageIsBounded(t *testing.T) {
	for _, usage := range []string{`{"prompt_tokens":-5,"completion_tokens":9223372036854775807}`, `{"prompt_tokens":1e300,"completion_tokens":"x"}`, `null`} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"model":"bad\nname","choices":[{"message":{"content":"t"},"finish_reason":"stop"}],"usage":%s}`, usage)
		})
		reply, err := open(t, serve(t, h)).Complete(t.Context(), model.Request{User: "q"})
		if err != nil {
			if kind(err) != model.BadAnswer {
				t.Errorf("%s: %v", usage, err)
			}
			continue
		}
		const most = 100_000_000
		if u := reply.Usage; u.Input < 0 || u.Input > most || u.Output < 0 || u.Output > most {
			t.Errorf("%s became %+v", usage, u)
		}
		if reply.Model != "m" {
			t.Errorf("model %q", reply.Model)
		}
	}
}

// Some servers call a tool and say that they stopped.
func TestToolCallThatStopped(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"stop"}]}`)
	})
	reply, err := open(t, serve(t, h)).Complete(t.Context(), model.Request{User: "q"})
	if err != nil || reply.Finish != model.FinishTool {
		t.Errorf("%q, %v", reply.Finish, err)
	}
}

// A key does not show, however a config is printed.
func TestSecret(t *testing.T) {
	c := provider.Config{Provider: provider.OpenAI, Key: summarizetest.Key}
	b, err := codec.Marshal(c.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%q %x", c.Key, c.Key), string(b)} {
		if strings.Contains(s, summarizetest.Key) || strings.Contains(s, fmt.Sprintf("%x", summarizetest.Key)) {
			t.Error(s)
		}
	}
}
