package provider

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
)

// Hostile actors: which addresses may be dialed, for a provider's own name, an
// operator's https one, and an operator's http one.
func TestAddresses(t *testing.T) {
	for _, at := range []struct {
		ip                 string
		public, own, plain bool
	}{
		{"8.8.8.8", true, true, false},
		{"2001:4860:4860::8888", true, true, false},
		{"64:ff9b::808:808", true, true, false}, // 8.8.8.8 by way of NAT64
		{"127.0.0.1", false, true, true},
		{"::1", false, true, true},
		{"10.1.2.3", false, true, true},
		{"fd12:3456::1", false, true, true},
		{"::ffff:192.168.0.1", false, true, true},
		{"64:ff9b::a01:203", false, true, true}, // 10.1.2.3
		{"169.254.169.254", false, false, false},
		{"::ffff:169.254.169.254", false, false, false},
		{"64:ff9b::a9fe:a9fe", false, false, false},
		{"fe80::1%eth0", false, false, false},
		{"fd00:ec2::254", false, false, false},
		{"fd20:ce::254", false, false, false},
		{"100.100.100.200", false, false, false},
		{"168.63.129.16", false, false, false},
		{"192.0.0.192", false, false, false},
		{"0.0.0.0", false, false, false},
		{"::", false, false, false},
		{"ff02::1", false, false, false},
	} {
		ip := netip.MustParseAddr(at.ip)
		got := [3]bool{
			addresses{}.check(ip) == nil,
			addresses{own: true}.check(ip) == nil,
			addresses{own: true, plain: true}.check(ip) == nil,
		}
		if want := [3]bool{at.public, at.own, at.plain}; got != want {
			t.Errorf("%s: allowed for public, own, plain: %v, want %v", at.ip, got, want)
		}
	}
}

// No proxy is taken from the environment: it would see what the check of
// addresses is there to keep in.
func TestNoProxy(t *testing.T) {
	if newTransport(Config{BaseURL: "https://api.test/"}, preset{}).Proxy != nil {
		t.Error("a proxy is read")
	}
}

type panics struct{}

func (panics) complete(context.Context, model.Request) (model.Reply, error) {
	panic("index out of range")
}

// A panic over an answer ends the call, not the worker.
func TestPanicIsABadAnswer(t *testing.T) {
	c := Config{}.withDefaults(preset{})
	m := &client{config: c, completer: panics{}, breaker: newBreaker(), calls: rate.NewLimiter(rate.Inf, 1)}
	if _, err := m.Complete(t.Context(), model.Request{User: "q"}); failure(err).Kind != model.BadAnswer {
		t.Error(err)
	}
}

// A provider's own name is public, and an operator's may be anything.
func TestOwnNames(t *testing.T) {
	for name, p := range presets {
		if base := p.base("us-east5"); base != "" && name != Ollama {
			c := Config{Provider: name, Location: "us-east5", BaseURL: base}
			if newAddresses(c, p, parse(t, c.BaseURL)).own {
				t.Errorf("%s: %s counts as the operator's", name, base)
			}
			c.BaseURL = "https://gateway.test/"
			if !newAddresses(c, p, parse(t, c.BaseURL)).own {
				t.Errorf("%s: a gateway counts as the provider's", name)
			}
		}
	}
}

// Whatever a body states, an error of it holds lower-case words and nothing else.
func TestRefusalQuotesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9_ .:-]{1,60}`))
		field := rapid.SampledFrom([]string{"code", "type", "status", "message", "error", "reason", "retryDelay"})
		var body any = rapid.MapOf(field, text).Draw(t, "fields")
		for range rapid.IntRange(0, 12).Draw(t, "depth") {
			body = map[string]any{"error": []any{body}}
		}
		e := refusal(rapid.IntRange(300, 599).Draw(t, "status"), http.Header{}, encode(t, body))
		code, ok := e.Err.(codeError)
		if e.Err != nil && !ok && e.Err != errRedirect {
			t.Fatalf("cause %T", e.Err)
		}
		for _, r := range code {
			if (r < 'a' || r > 'z') && r != '_' && r != ',' && r != ' ' {
				t.Fatalf("%q in %q", r, code)
			}
		}
		if len(code) > maxCodes*42 || e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter {
			t.Fatalf("%+v", e)
		}
	})
}

func parse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func encode(t *rapid.T, v any) []byte {
	b, err := codec.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
