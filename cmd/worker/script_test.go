package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"compactd/internal/ops/fakemodel"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/freeport"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"worker": main, "compactd-worker": main, "agent": agent}) // as built, and as installed
}

// agent makes calls of the model at OPENAI_BASE_URL, prints how many of its messages the last one
// had, and exits with 7.
func agent() {
	type answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	var history []map[string]string
	var out answer
	for range 20 {
		out = answer{}
		history = append(history, map[string]string{"role": "user", "content": "And then?"})
		body, _ := json.Marshal(map[string]any{"model": "any", "messages": history})
		r, err := http.Post(os.Getenv("OPENAI_BASE_URL")+"/chat/completions", "application/json", bytes.NewReader(body)) //nolint:noctx // it is a program of its own
		if err == nil {
			err = json.NewDecoder(r.Body).Decode(&out)
			_ = r.Body.Close()
		}
		if err != nil || len(out.Choices) == 0 {
			fmt.Println(err)
			os.Exit(1)
		}
		history = append(history, map[string]string{"role": "assistant", "content": out.Choices[0].Message.Content})
	}
	fmt.Println(out.Choices[0].Message.Content[:20])
	os.Exit(7)
}

// newModel is a model with a small window, whose answers begin with the number of messages.
func newModel() *httptest.Server {
	return httptest.NewServer(&fakemodel.Model{Window: 4096, Output: 256, Answer: func(c *fakemodel.Call) fakemodel.Answer {
		return fakemodel.Answer{Text: fmt.Sprintf("%3d of 39 messages. ", len(c.Messages)) + strings.Repeat("There is more to say about it. ", 40)}
	}})
}

// The scripts show what an operator sees. $ADDR is a free address, $EXAMPLES the
// directory of example sessions. $MODEL and
// $DOWN are a provider of models that works, and one that fails every call; $LLM is a model with a
// small window for agents.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "publisher"), "compactd/cmd/publisher")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the publisher: %v\n%s", err, out)
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"until": until, "ask": ask, "tamper": tamper},
		Setup: func(env *testscript.Env) error {
			addr, err := freeport.Address()
			env.Setenv("ADDR", addr)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("EXAMPLES", examples)
			env.Setenv("COMPACTD_HTTP", "127.0.0.1:-1")
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			good, down := summarizetest.Start(t, summarizetest.TenSections("the model has read it all (turn 1)")), summarizetest.Start(t, nil)
			down.Script(summarizetest.ServerError)
			env.Setenv("MODEL", good.URL())
			env.Setenv("DOWN", down.URL())
			llm := newModel()
			env.Defer(llm.Close)
			env.Setenv("LLM", llm.URL)
			return err
		},
	})
}

// until waits until a file matches, and runs a command again and again while it
// does not: until FILE REGEXP [COMMAND ARG...]
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until FILE REGEXP [COMMAND ARG...]")
	}
	file, want := ts.MkAbs(args[0]), regexp.MustCompile(args[1])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(file)
		if err == nil && want.Match(data) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not match %s:\n%s", args[0], want, data)
		}
		if len(args) > 2 {
			ts.Check(ts.Exec(args[2], args[3:]...))
		}
	}
}

// ask sends a request over HTTP to the worker that wrote a log: ask LOG PATH FILE [TOKEN]. FILE
// gets the status and the answer.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: ask LOG PATH FILE [TOKEN [BODY]]")
	}
	at := regexp.MustCompile(`"http":"([^"]+)"`).FindStringSubmatch(ts.ReadFile(args[0]))
	if at == nil {
		ts.Fatalf("%s has no address", args[0])
	}
	method, in := http.MethodGet, io.Reader(http.NoBody)
	if len(args) > 4 {
		method, in = http.MethodPost, strings.NewReader(args[4])
	}
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+at[1]+args[1], in)
	ts.Check(err)
	if len(args) > 3 {
		r.Header.Set("Authorization", "Bearer "+args[3])
	}
	resp, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), fmt.Appendf(nil, "%d\n%s", resp.StatusCode, body), 0o600))
}
