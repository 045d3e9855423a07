package sdktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
)

var requests = []model.Request{
	{System: "rules: \"quoted\" <b>&amp;", User: "line\nline\t\u00e9\u4e2d\U0001F600 </summary>\u2028", MaxOutputTokens: 1_000},
	{User: "q", MaxOutputTokens: 4_000},
}

// No provider is left out.
func TestEveryProvider(t *testing.T) {
	under := map[provider.Name]bool{}
	for _, s := range subjects {
		under[s.name] = true
	}
	for _, n := range provider.Names() {
		if !under[n] {
			t.Errorf("%s is not compared with an SDK", n)
		}
	}
}

// A request of ours is that of the SDK: the same method, host, path, access and body.
func TestRequests(t *testing.T) {
	w := newRecorder(t)
	for _, s := range subjects {
		for _, r := range requests {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			ours, err := w.ours(t, s)(ctx, r)
			if err != nil {
				t.Fatalf("%s: ours: %v", s, err)
			}
			sent := w.last(t)
			theirs, err := w.theirs(t, s)(ctx, r)
			if err != nil {
				t.Fatalf("%s: the SDK's: %v", s, err)
			}
			cancel()
			if d := cmp.Diff(viewOf(t, s, w.last(t)), viewOf(t, s, sent)); d != "" {
				t.Errorf("%s: request (- SDK + ours)\n%s", s, d)
			}
			if d := cmp.Diff(theirs, ours); d != "" {
				t.Errorf("%s: reply (- SDK + ours)\n%s", s, d)
			}
		}
	}
}

// view is what two requests have to agree in.
type view struct {
	Method, Host, Path string
	Access             map[string]string
	Body               any
}

func viewOf(t *testing.T, s subject, r request) view {
	t.Helper()
	v := view{Method: r.Method, Host: r.Host, Path: r.Path, Access: map[string]string{}}
	names := []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Content-Type", "X-Server-Timeout", "X-Amz-Security-Token"}
	if s.name == provider.Anthropic { // the clouds have it in the body, and the SDK in both
		names = append(names, "Anthropic-Version")
	}
	for _, name := range names {
		if value := r.Header.Get(name); value != "" {
			v.Access[name] = value
		}
	}
	if s.keyless {
		v.Access["Authorization"] = signature(t, r)
	}
	if seconds := v.Access["X-Server-Timeout"]; seconds != "" {
		if n, err := strconv.Atoi(seconds); err != nil || n <= 0 || n > 240 {
			t.Errorf("%s: X-Server-Timeout %q", s, seconds)
		}
		v.Access["X-Server-Timeout"] = "in time"
	}
	if err := json.Unmarshal(r.Body, &v.Body); err != nil {
		t.Errorf("%s: %v", s, err)
	}
	return v
}

// signature signs a request again as it arrived, with the headers that were signed, and
// returns whether that gives the same.
func signature(t *testing.T, r request) string {
	t.Helper()
	got := r.Header.Get("Authorization")
	_, names, _ := strings.Cut(got, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := http.NewRequestWithContext(t.Context(), r.Method, "http://"+r.Host+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(names, ";") {
		if v := r.Header.Get(name); v != "" && !strings.HasPrefix(name, "x-amz-") && name != "content-length" {
			again.Header.Set(name, v)
		}
	}
	sum := sha256.Sum256(r.Body)
	if err := v4.NewSigner().SignHTTP(t.Context(), awsKeys(), again, hex.EncodeToString(sum[:]), "bedrock", "us-east5", at); err != nil {
		t.Fatal(err)
	}
	if want := again.Header.Get("Authorization"); got != want {
		return "signed " + got + ", not " + want
	}
	return "signed"
}

// Our bodies pass through the SDKs' own types and nothing gets lost: a field that an
// SDK lacks would.
func TestBodiesAreOfTheSDK(t *testing.T) {
	w := newRecorder(t)
	for _, s := range subjects {
		for _, r := range requests {
			if _, err := w.ours(t, s)(t.Context(), r); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			body := w.last(t).Body
			var typed any
			switch s.name {
			case provider.Google, provider.Vertex:
				typed = &struct {
					Contents          []*genai.Content        `json:"contents"`
					SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
					GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
				}{}
			case provider.Anthropic:
				typed = &anthropic.MessageNewParams{}
			case provider.AnthropicVertex, provider.Bedrock:
				body = withoutVersion(t, s, body)
				typed = &anthropic.MessageNewParams{}
			default:
				typed = &openai.ChatCompletionNewParams{}
			}
			if d := through(t, body, typed); d != "" {
				t.Errorf("%s: body (- ours + as the SDK's types have it)\n%s", s, d)
			}
		}
	}
}

// withoutVersion checks what the SDK adds to the body for a cloud, and gives the body a
// model, which the cloud has in its path.
func withoutVersion(t *testing.T, s subject, body []byte) []byte {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	if o["anthropic_version"] == nil || o["model"] != nil {
		t.Errorf("%s: %s", s, body)
	}
	delete(o, "anthropic_version")
	o["model"] = s.model
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func through(t *testing.T, body []byte, typed any) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(typed); err != nil {
		return err.Error()
	}
	b, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	var before, after any
	if err := json.Unmarshal(body, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &after); err != nil {
		t.Fatal(err)
	}
	return cmp.Diff(before, after)
}

// The answers of the suite's server mean the same to the SDKs: that it plays the providers,
// and that both sides read it alike, good answers and refusals.
func TestModes(t *testing.T) {
	w := newRecorder(t)
	for _, s := range subjects {
		for _, mode := range []summarizetest.Mode{
			summarizetest.Good, summarizetest.Length, summarizetest.ToolCall, summarizetest.Refusal, summarizetest.PromptRefused,
			summarizetest.RateLimited, summarizetest.ServerError, summarizetest.TooLong, summarizetest.BadKey, summarizetest.NoModel,
			summarizetest.CutJSON, summarizetest.Foreign, summarizetest.EmptyBody,
		} {
			w.played.Script(mode)
			agree(t, w, s, string(mode))
		}
	}
}
