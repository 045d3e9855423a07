package transport_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"compactd/client"
	"compactd/client/transport"
	"compactd/examples/agenttest"
)

// An agent sends its whole history with each call, as it did without compactd: the provider gets
// what fits.
func Example() {
	url, token, stop := startWorker()
	defer stop()
	provider := httptest.NewServer(http.HandlerFunc(answer))
	defer provider.Close()
	config := client.Config{Model: client.Model{ContextWindow: 4000, MaxOutputTokens: 500}} // that the table of windows lacks

	// doc:begin three
	fitter := client.NewFitter(client.FitterConfig{Worker: &client.HTTP{URL: url, Token: token}})
	t := &transport.Transport{Fitter: fitter, Session: "chat-42", Config: config}
	sdk := &http.Client{Transport: t} // option.WithHTTPClient(sdk)
	// doc:end three

	var history []message
	for i := range 20 {
		history = append(history, message{"user", fmt.Sprint("Question ", i, strings.Repeat(" and more", 200))})
		history = append(history, message{"assistant", call(sdk, provider.URL, history)})
	}
	received, err := strconv.Atoi(history[len(history)-1].Content)
	must(err)
	fmt.Println(len(history), "messages in the history, less than half of them in a call:", received < 20)
	// Output: 40 messages in the history, less than half of them in a call: true
}

// startWorker runs a worker with a listener for agents.
func startWorker() (url, token string, stop func()) {
	dir, err := os.MkdirTemp("", "compactd-example-")
	must(err)
	token, tokens := "a-token", filepath.Join(dir, "tokens")
	must(os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte(token))), 0o600))
	_, addr, end, err := agenttest.StartEdge(context.Background(), dir, tokens)
	must(err)
	return "http://" + addr, token, func() {
		must(end())
		must(os.RemoveAll(dir))
	}
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// call is what an SDK does.
func call(sdk *http.Client, url string, history []message) string {
	body, err := json.Marshal(map[string]any{"model": "my-model", "messages": history})
	must(err)
	r, err := sdk.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
	must(err)
	defer func() { must(r.Body.Close()) }()
	text, err := io.ReadAll(r.Body)
	must(err)
	return string(text)
}

// answer is a model that counts the messages it receives.
func answer(w http.ResponseWriter, r *http.Request) {
	var in struct{ Messages []message }
	must(json.NewDecoder(r.Body).Decode(&in))
	fmt.Fprint(w, len(in.Messages))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
