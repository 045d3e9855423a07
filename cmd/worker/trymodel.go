package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"compactd/client"
	"compactd/client/transport"
	"compactd/internal/ops/fakemodel"
	"compactd/internal/worker/service"
)

type tryCmd struct {
	Model  string `default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Where the fake model answers; port -1 picks a free one (${default})."`
	Window int    `default:"16384" placeholder:"TOKENS" help:"Window of the fake model (${default})."`
}

// direct is the address of the model without compactd in front of it.
const direct = "/direct"

// Run serves until ctx ends.
func (c *tryCmd) Run(ctx context.Context, f *flags, log zerolog.Logger) error {
	return c.run(ctx, f, log.Level(zerolog.WarnLevel), os.Stdout)
}

func (c *tryCmd) run(ctx context.Context, f *flags, log zerolog.Logger, out io.Writer) error {
	dir, err := os.MkdirTemp("", "compactd-try-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	listener, err := net.Listen("tcp", strings.Replace(c.Model, ":-1", ":0", 1)) //nolint:noctx // it is there before ctx matters
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	defer listener.Close()
	token := rand.Text()
	f.NATS, f.Listen, f.HTTP, f.Data = "", "127.0.0.1:-1", "off", filepath.Join(dir, "data")
	if err := f.listenFor(token, filepath.Join(dir, "tokens")); err != nil {
		return err
	}
	return f.beside(ctx, log, token, func(ctx context.Context, w *client.HTTP) error { return c.serve(ctx, listener, w, out) })
}

// serve answers calls of agents, with compactd in front of the model and without.
func (c *tryCmd) serve(ctx context.Context, listener net.Listener, worker *client.HTTP, out io.Writer) error {
	at := "http://" + listener.Addr().String()
	target, err := url.Parse(at + direct)
	if err != nil {
		return err
	}
	model := &fakemodel.Model{Window: c.Window, Output: c.Window / 16, Answer: c.answer, OnCall: func(call *fakemodel.Call) { c.show(out, call) }}
	mux := http.NewServeMux()
	mux.Handle(direct+"/", http.StripPrefix(direct, model))
	mux.Handle("/", &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // streams
		Transport: &transport.Transport{
			Fitter: client.NewFitter(client.FitterConfig{
				Worker: worker, Wait: 5 * time.Second,
				OnProblem: func(n client.Note) { fmt.Fprintf(out, "problem: %s: %s\n", n.Code, n.Message) },
				OnCompacted: func(_ string, s *client.Synced) {
					fmt.Fprintf(out, "compacted: generation %d, an estimated %d of %d tokens are used\n", s.Generation, s.Budget.EstimatedInput, s.Budget.AvailableInput)
				},
			}),
			Session: "try", Config: client.Config{Model: client.Model{ContextWindow: int64(c.Window), MaxOutputTokens: int64(model.Output)}},
		},
	})
	fmt.Fprintf(out, `A fake model with a window of %d tokens, and compactd in front of it. Start your agent with
  OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=none
  ANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=none
or put the three lines of docs/clients.md into it, and start it with
  COMPACTD_URL=%s COMPACTD_TOKEN=%s OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=none
`, c.Window, at, at, worker.URL, worker.Token, target)
	return service.ServeUntil(ctx, listener, stopTime, &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute})
}

// answer fills a twelfth of the window, so that a compaction comes soon.
func (c *tryCmd) answer(call *fakemodel.Call) fakemodel.Answer {
	const sentence = "The fake model has more to add to this point. "
	return fakemodel.Answer{Text: fmt.Sprintf("Answer %d. ", call.Number) + strings.Repeat(sentence, c.Window/12*4/len(sentence))}
}

func (c *tryCmd) show(out io.Writer, call *fakemodel.Call) {
	fmt.Fprintf(out, "call %d: %d messages, %d of %d tokens", call.Number, len(call.Messages), call.Tokens, c.Window)
	if call.TooLong {
		fmt.Fprint(out, ": refused, too long")
	}
	if len(call.Refused) > 0 {
		fmt.Fprintf(out, ": refused, %s", strings.Join(call.Refused, "; "))
	}
	fmt.Fprintln(out)
}
