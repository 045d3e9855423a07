package sdktest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
)

// asker is one call of either side.
type asker func(context.Context, model.Request) (model.Reply, error)

// refused is what an SDK reports of an answer that is no success.
type refused struct {
	status int
	code   string // the provider's own, as the SDK reads it
}

func (r *refused) Error() string { return fmt.Sprint("HTTP ", r.status, " ", r.code) }

// subject is a provider: ours, and the SDK that speaks to it.
type subject struct {
	name      provider.Name
	model     string
	base      string // of the API, below the server's
	maxTokens bool   // the bound on output is called max_tokens
	keyless   bool   // signs with AWS's credentials
	sdk       func(provider.Config, subject) (asker, error)
}

func (s subject) String() string {
	if s.keyless {
		return string(s.name) + ", signed"
	}
	return string(s.name)
}

const claudeOfBedrock = "us.anthropic.claude-haiku-4-5-20251001-v1:0"

var subjects = []subject{
	{name: provider.OpenAI, model: "gpt-4o", base: "v1", sdk: openAI},
	{name: provider.Azure, model: "gpt-4o", base: "openai/v1/", sdk: openAI},
	{name: provider.Mistral, model: "mistral-large", base: "v1/", maxTokens: true, sdk: openAI},
	{name: provider.Ollama, model: "llama3.3:70b", base: "v1/", maxTokens: true, sdk: openAI},
	{name: provider.LiteLLM, model: "claude", maxTokens: true, sdk: openAI},
	{name: provider.VLLM, model: "Qwen/Qwen3-32B", base: "v1", maxTokens: true, sdk: openAI},
	{name: provider.OpenRouter, model: "anthropic/claude-haiku-4.5", base: "api/v1/", maxTokens: true, sdk: openAI},
	{name: provider.HuggingFace, model: "meta-llama/Llama-3.3-70B-Instruct", base: "v1/", maxTokens: true, sdk: openAI},
	{name: provider.Anthropic, model: "claude-haiku-4-5", sdk: anthropics},
	{name: provider.AnthropicVertex, model: "claude-haiku-4-5@20251001", sdk: anthropicsVertex},
	{name: provider.Bedrock, model: claudeOfBedrock, sdk: anthropicsBedrock},
	{name: provider.Bedrock, model: claudeOfBedrock, keyless: true, sdk: anthropicsBedrock},
	{name: provider.Google, model: "gemini-2.5-flash", sdk: gemini},
	{name: provider.Vertex, model: "gemini-2.5-flash", sdk: gemini},
	{name: provider.Vertex, model: "meta/llama-4", sdk: gemini},
}

// request is a call as it arrived.
type request struct {
	Method, Host, Path string
	Header             http.Header
	Body               []byte
}

// recorder is a provider of models that records what it is sent.
type recorder struct {
	url    string // with a slash at the end
	played *summarizetest.Server
	// answer replaces what the played provider answers, when it is set.
	status int
	answer []byte

	mu   sync.Mutex // guards the field below
	sent []request
}

// newRecorder isolates a test from the variables that the SDKs read.
func newRecorder(t *testing.T) *recorder {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "AWS_BEARER_TOKEN_BEDROCK": "",
		"OPENAI_BASE_URL": "", "ANTHROPIC_BASE_URL": "", "GOOGLE_API_KEY": "", "GEMINI_API_KEY": "", "GOOGLE_GENAI_USE_VERTEXAI": "",
	} {
		t.Setenv(name, value)
	}
	googleCredentials(t)
	w := &recorder{played: summarizetest.Start(t, func(p summarizetest.Prompt) string { return "answer to " + p.User })}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.url = s.URL + "/"
	return w
}

// ServeHTTP implements [http.Handler].
func (w *recorder) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.sent = append(w.sent, request{Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Header: r.Header.Clone(), Body: body})
	w.mu.Unlock()
	if w.answer != nil {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(w.status)
		_, _ = rw.Write(w.answer)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.played.ServeHTTP(rw, r)
}

// marshals sets what the server answers to a value of an SDK.
func (w *recorder) marshals(t *testing.T, status int, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	w.status, w.answer = status, b
}

// last is the newest request.
func (w *recorder) last(t *testing.T) request {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) == 0 {
		t.Fatal("no request arrived")
	}
	return w.sent[len(w.sent)-1]
}

func (w *recorder) config(s subject) provider.Config {
	c := provider.Config{
		Provider: s.name, Model: s.model, BaseURL: w.url + s.base, Key: summarizetest.Key,
		Project: "some-project", Location: "us-east5", Window: 100_000, MaxOutput: 4_000, Attempts: 1,
	}
	if s.keyless {
		c.Key = ""
	}
	return c
}

// ours and theirs open both sides of a subject.
func (w *recorder) ours(t *testing.T, s subject) asker {
	t.Helper()
	m, err := provider.New(w.config(s))
	if err != nil {
		t.Fatal(err)
	}
	return m.Complete
}

func (w *recorder) theirs(t *testing.T, s subject) asker {
	t.Helper()
	a, err := s.sdk(w.config(s), s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// googleCredentials points Google's library to a service account whose tokens are the
// key of the suite.
func googleCredentials(t *testing.T) {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, summarizetest.Key)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]any{
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
