package provider_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
)

// under is a provider as the tests reach it.
type under struct {
	provider provider.Name
	path     string // of its API, below the server's
}

var providers = []under{
	{provider.OpenAI, "v1"},
	{provider.Azure, "openai/v1/"},
	{provider.Mistral, "v1/"},
	{provider.Ollama, "v1/"},
	{provider.LiteLLM, ""},
	{provider.VLLM, "v1"},
	{provider.OpenRouter, "api/v1/"},
	{provider.HuggingFace, "v1/"},
	{provider.Anthropic, ""},
	{provider.AnthropicVertex, ""},
	{provider.Bedrock, ""},
	{provider.Google, ""},
	{provider.Vertex, ""},
}

// open makes a model of c, which leads to a server of the suite.
func (u under) open(t testing.TB, c provider.Config) model.Model {
	t.Helper()
	c.Provider, c.Model = u.provider, "some-model"
	c.BaseURL += u.path
	c.Window = 100_000
	c.Project, c.Location = "some-project", "us-east5"
	m, err := provider.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// C5: every provider keeps the contract of a model, and none is left out.
func TestProviders(t *testing.T) {
	googleCredentials(t)
	if len(providers) != len(provider.Names()) {
		t.Fatalf("%d providers under test of %d", len(providers), len(provider.Names()))
	}
	for _, u := range providers {
		t.Run(string(u.provider), func(t *testing.T) {
			summarizetest.Run(t, u.open)
		})
	}
}

// The same over sockets, with the dialer that checks addresses: what a bubble
// cannot show is a connection that is reset, and time that passes.
func TestSockets(t *testing.T) {
	googleCredentials(t)
	for _, u := range providers {
		t.Run(string(u.provider), func(t *testing.T) {
			s := summarizetest.Start(t, func(p summarizetest.Prompt) string { return "answer to " + p.User })
			s.Script(summarizetest.Reset, summarizetest.CutBody, summarizetest.Good)
			c := s.Config("")
			c.Backoff = 1
			reply, err := u.open(t, c).Complete(t.Context(), model.Request{User: "q"})
			if err != nil || reply.Text != "answer to q" || s.Calls() != 3 {
				t.Errorf("%q, %v after %d calls", reply.Text, err, s.Calls())
			}
		})
	}
}

// Differences between services that speak alike: the name of the
// bound on output, and the header of the key.
func TestDifferences(t *testing.T) {
	for _, want := range []struct {
		provider provider.Name
		bound    string
		header   string
	}{
		{provider.OpenAI, "max_completion_tokens", "Authorization"},
		{provider.Azure, "max_completion_tokens", "Api-Key"},
		{provider.Mistral, "max_tokens", "Authorization"},
		{provider.Ollama, "max_tokens", "Authorization"},
		{provider.LiteLLM, "max_tokens", "Authorization"},
		{provider.VLLM, "max_tokens", "Authorization"},
		{provider.OpenRouter, "max_tokens", "Authorization"},
		{provider.HuggingFace, "max_tokens", "Authorization"},
	} {
		var bounds, headers []string
		c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var body map[string]any
			data, _ := io.ReadAll(r.Body)
			_ = codec.Unmarshal(data, &body)
			for k := range body {
				if strings.HasPrefix(k, "max_") {
					bounds = append(bounds, k)
				}
			}
			for _, k := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
				if r.Header.Get(k) != "" {
					headers = append(headers, k)
				}
			}
		}))
		_, _ = under{want.provider, ""}.open(t, c).Complete(t.Context(), model.Request{User: "q"})
		if !slices.Equal(bounds, []string{want.bound}) || !slices.Equal(headers, []string{want.header}) {
			t.Errorf("%s: %q, %q", want.provider, bounds, headers)
		}
	}
}

// Bedrock without a key signs with the credentials that AWS's own tools read.
func TestBedrockSigns(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "canary-secret", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "AWS_BEARER_TOKEN_BEDROCK": "",
	} {
		t.Setenv(name, value)
	}
	s := summarizetest.Start(t, nil)
	c := s.Config("")
	c.Key = ""
	if _, err := (under{provider.Bedrock, ""}).open(t, c).Complete(t.Context(), model.Request{User: "q"}); err != nil {
		t.Fatal(err)
	}
	const want = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"
	if key := s.Prompts()[0].Key; !strings.HasPrefix(key, want) || !strings.Contains(key, "/us-east5/bedrock/aws4_request") {
		t.Errorf("signed with %q", key)
	}
}

// Without credentials a cloud reports an error, and is not called.
func TestCloudWithoutCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"GOOGLE_APPLICATION_CREDENTIALS": filepath.Join(t.TempDir(), "none.json"),
		"AWS_ACCESS_KEY_ID":              "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "AWS_BEARER_TOKEN_BEDROCK": "",
	} {
		t.Setenv(name, value)
	}
	for _, p := range []provider.Name{provider.Vertex, provider.AnthropicVertex, provider.Bedrock} {
		s := summarizetest.Start(t, nil)
		c := s.Config("")
		c.Key = ""
		_, err := under{p, ""}.open(t, c).Complete(t.Context(), model.Request{User: "q"})
		if kind(err) != model.Auth || s.Calls() != 0 {
			t.Errorf("%s: %v after %d calls", p, err, s.Calls())
		}
	}
}

// googleCredentials points Google's library to a service account, whose tokens are
// the suite's key.
func googleCredentials(t *testing.T) {
	t.Helper()
	tokens := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, summarizetest.Key)
	}))
	tokens.Config.SetKeepAlivesEnabled(false) // an idle connection would outlive a bubble
	tokens.Start()
	t.Cleanup(tokens.Close)

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := codec.Marshal(map[string]any{
		"type": "service_account", "project_id": "some-project", "client_email": "a@b.test", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": tokens.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, account, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}
