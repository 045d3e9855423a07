package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"compactd/client"
	"compactd/client/transport"
	"compactd/internal/disk"
	"compactd/internal/gateway"
	"compactd/internal/ops/access"
	"compactd/internal/ops/cli"
	"compactd/internal/worker/service"
)

// gatewayFlags are those of every gateway.
type gatewayFlags struct {
	Upstream map[string]string `env:"COMPACTD_UPSTREAM" placeholder:"NAME=URL" help:"Base URL of a provider, without the path of its API. Requests to /to/NAME/… go there, others to anthropic or openai. Can be repeated (anthropic=https://api.anthropic.com and openai=https://api.openai.com)."`
	Budget   time.Duration     `env:"COMPACTD_BUDGET" default:"50ms" placeholder:"TIME" help:"Longest wait of a call for a worker; after it the call is sent without one (${default})."`
	Audit    bool              `env:"COMPACTD_AUDIT" help:"Measure the possible saving, and send each call unchanged."`
	Window   int64             `env:"COMPACTD_WINDOW" placeholder:"TOKENS" help:"Window of every model. Absent: as in the table of models."`
}

type gatewayCmd struct {
	Gateway string `env:"COMPACTD_GATEWAY" default:"127.0.0.1:8787" placeholder:"HOST:PORT" help:"Where agents send their requests; port -1 picks a free one (${default})."`
	gatewayFlags
	Principal       string        `env:"COMPACTD_PRINCIPAL" placeholder:"HEADER" help:"Header with the sender of a request, set by a proxy in front. Absent: the credential, and the user that the request names."`
	Worker          string        `env:"COMPACTD_URL" placeholder:"URL" help:"Listener for agents (--agents) of a worker. Absent: this process runs a worker too."`
	WorkerToken     access.Secret `env:"COMPACTD_TOKEN" placeholder:"TOKEN" help:"Token of the role agent for --worker. All gateways of a fleet need the same one: it is the key of the hashes in their sessions."`
	WorkerTokenFile access.File   `env:"COMPACTD_TOKEN_FILE" placeholder:"FILE" help:"File that holds the token of --worker-token and nothing else."`
}

// Run serves until ctx ends.
func (c *gatewayCmd) Run(ctx context.Context, f *flags, log zerolog.Logger) error {
	return c.serve(ctx, f, log, func(addr string) {
		log.Info().Str("gateway", addr).Strs("upstreams", slices.Sorted(maps.Keys(c.Upstream))).Bool("audit", c.Audit).Msg("gateway ready")
		if f.LogFormat == "console" {
			fmt.Fprintf(os.Stderr, "try: ANTHROPIC_BASE_URL=http://%[1]s claude\ntry: OPENAI_BASE_URL=http://%[1]s/v1 YOUR-AGENT\n", reachable(addr))
		}
	}, &savings{})
}

// defaultUpstreams are the providers that no flag names.
var defaultUpstreams = map[string]string{"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}

// serve listens, calls ready, and serves until ctx ends.
func (c *gatewayCmd) serve(ctx context.Context, f *flags, log zerolog.Logger, ready func(addr string), s *savings) error {
	upstreams, err := c.upstreams()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", strings.Replace(c.Gateway, ":-1", ":0", 1)) //nolint:noctx // it is there before ctx matters
	if err != nil {
		return fmt.Errorf("--gateway: %w", err)
	}
	defer listener.Close()
	registry := prometheus.NewRegistry()
	stdlog.SetOutput(io.Discard) // net/http logs bytes of answers there
	return c.withWorker(ctx, f, log, func(ctx context.Context, w *client.HTTP) error {
		secret := sha256.Sum256([]byte("gateway " + w.Token))
		g, err := gateway.New(gateway.Config{
			Upstreams: upstreams, Worker: w, Secret: secret[:], Budget: c.Budget, Audit: c.Audit, Principal: c.Principal,
			Model: client.Model{ContextWindow: c.Window}, Registerer: registry,
			OnProblem: func(n client.Note) {
				s.problems.Add(1)
				log.Warn().Str("code", string(n.Code)).Str("hint", n.Hint).Msg(n.Message)
			},
			OnCompacted: func(session string, to *client.Synced) {
				s.compactions.Add(1)
				log.Info().Str("session", session).Int64("generation", to.Generation).Int64("estimated_input_tokens", to.Budget.EstimatedInput).Msg("compacted")
			},
			OnSaved: s.add,
		})
		if err != nil {
			return err
		}
		metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
		ready(listener.Addr().String())
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path { // a mux would redirect paths of providers
			case "/healthz":
				_, _ = io.WriteString(w, "ok\n")
			case "/metrics":
				metrics.ServeHTTP(w, r)
			default:
				g.ServeHTTP(w, r)
			}
		})
		return service.ServeUntil(ctx, listener, stopTime, &http.Server{
			Handler: handler, ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, // a body that is passed on has its own
			IdleTimeout: idleTime,
		})
	})
}

// upstreams are the URLs of the flags, and of the providers that they do not name.
func (c *gatewayFlags) upstreams() (map[string]*url.URL, error) {
	all := maps.Clone(defaultUpstreams)
	maps.Copy(all, c.Upstream)
	c.Upstream = all
	out := map[string]*url.URL{}
	for name, text := range all {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil {
			return nil, fmt.Errorf("--upstream %s: %w", name, err)
		}
		out[name] = u
	}
	return out, nil
}

// withWorker calls serve with a worker: that of --worker, or this process, whose worker then ends
// with it.
func (c *gatewayCmd) withWorker(ctx context.Context, f *flags, log zerolog.Logger, serve func(context.Context, *client.HTTP) error) error {
	token := string(c.WorkerToken)
	if c.WorkerTokenFile != "" {
		text, err := os.ReadFile(string(c.WorkerTokenFile))
		if err != nil {
			return fmt.Errorf("--worker-token-file: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	switch {
	case c.Worker != "" && token == "":
		return errors.New("--worker needs --worker-token or --worker-token-file, a token of the role agent")
	case c.Worker != "":
		_, stop, err := f.startTraces(ctx, log)
		if err != nil {
			return err
		}
		defer stop()
		return serve(ctx, &client.HTTP{URL: c.Worker, Token: token})
	case !f.off() && token == "":
		return errors.New("--agents with a gateway in the same process needs --worker-token, one of the tokens of --agents-tokens")
	case f.off():
		var err error
		if token, err = f.ownToken(); err != nil {
			return err
		}
	}
	return f.beside(ctx, log, token, serve)
}

// ownToken is the token of a gateway with a worker of its own, the same after each start, in a
// listener for agents that has no other.
func (f *flags) ownToken() (string, error) {
	if err := cmp.Or(disk.Private(f.Data), os.MkdirAll(f.Data, 0o700)); err != nil {
		return "", fmt.Errorf("--data: %w", err)
	}
	file := f.dataOf("gateway.token")
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		text = []byte(rand.Text())
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("--data: %w", err)
	}
	token := string(text)
	return token, f.listenFor(token, f.dataOf("gateway.tokens"))
}

// listenFor sets a listener for agents on a free port, whose file has one token.
func (f *flags) listenFor(token, file string) error {
	sum := sha256.Sum256([]byte(token))
	if err := os.WriteFile(file, []byte(hex.EncodeToString(sum[:])+" default agent\n"), 0o600); err != nil {
		return err
	}
	f.agentsFlags = agentsFlags{Agents: "127.0.0.1:-1", AgentsTokens: file, AgentsRate: 1 << 20}
	return nil
}

// beside runs the worker of this process, and serve with it, until one of them ends.
func (f *flags) beside(ctx context.Context, log zerolog.Logger, token string, serve func(context.Context, *client.HTTP) error) error {
	ready := make(chan string, 1)
	f.onReady = func(agents string) { ready <- agents }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running errgroup.Group
	running.Go(func() error {
		defer cancel()
		if err := f.serve(ctx, log); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
	running.Go(func() error {
		defer cancel()
		select {
		case agents := <-ready:
			return serve(ctx, &client.HTTP{URL: "http://" + agents, Token: token})
		case <-ctx.Done():
			return nil
		}
	})
	return running.Wait()
}

const (
	// stopTime is the time of a stop for answers under way.
	stopTime = 5 * time.Second
	// idleTime is longer than agents keep a connection without a request.
	idleTime = 5 * time.Minute
)

// savings are the results of a gateway.
type savings struct {
	calls, tokens, compactions, problems atomic.Int64
}

func (s *savings) add(r transport.Report) {
	s.calls.Add(1)
	s.tokens.Add(r.Saved)
}

// runCmd runs an agent behind a gateway of its own.
type runCmd struct {
	gatewayFlags
	Command []string `arg:"" passthrough:"" placeholder:"COMMAND" help:"The agent, with its arguments."`
}

// Run returns when the agent ends, with its exit code.
func (c *runCmd) Run(ctx context.Context, f *flags, log zerolog.Logger) error {
	return c.run(ctx, f, log.Level(zerolog.ErrorLevel), os.Stderr)
}

func (c *runCmd) run(ctx context.Context, f *flags, log zerolog.Logger, out io.Writer) error {
	if c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	if len(c.Command) == 0 {
		return fmt.Errorf("run needs a command: %s run -- claude", cli.Program("worker"))
	}
	if _, err := exec.LookPath(c.Command[0]); err != nil {
		return err
	}
	bases := c.bases()
	if !f.dataGiven {
		dir, done, err := stateDir()
		if err != nil {
			return err
		}
		defer done()
		f.Data = dir
	}
	f.Listen, f.HTTP, f.Agents = "127.0.0.1:-1", "off", "off"
	if !f.natsGiven { // variables of a fleet's worker are not for the sessions of this machine
		f.NATS, f.Replicas = "", 1
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	started := context.AfterFunc(ctx, cancel) // until then a signal ends this process, and from then on the agent
	var s savings
	var agent chan error // nil until it is started
	gateway := gatewayCmd{Gateway: "127.0.0.1:-1", gatewayFlags: c.gatewayFlags}
	err := gateway.serve(serving, f, log, func(addr string) {
		agent = make(chan error, 1)
		started()
		go func() {
			defer cancel()
			agent <- runAlone(c.agent(serving, "http://"+addr, bases))
		}()
	}, &s)
	if agent == nil {
		return err
	}
	err = cmp.Or(<-agent, err)
	fmt.Fprintf(out, "compactd: %d calls were shorter, by an estimated %d tokens in all; %d compactions, %d problems\n",
		s.calls.Load(), s.tokens.Load(), s.compactions.Load(), s.problems.Load())
	return err
}

// bases are the paths of base URLs for the agent, by variable. A base URL that the agent would have had
// without compactd is an upstream.
func (c *runCmd) bases() map[string]string {
	out := map[string]string{"ANTHROPIC_BASE_URL": "", "OPENAI_BASE_URL": "/v1"}
	for name, variable := range map[string]string{"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"} {
		if at := os.Getenv(variable); at != "" && c.Upstream[name] == "" {
			if c.Upstream == nil {
				c.Upstream = map[string]string{}
			}
			c.Upstream[name], out[variable] = at, "/to/"+name
		}
	}
	return out
}

// runAlone runs a command that gets the signals of this process. A terminal sends those of its keys to
// both.
func runAlone(cmd *exec.Cmd) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer close(signals)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return err
	}
	keys := slices.ContainsFunc([]*os.File{os.Stdin, os.Stdout, os.Stderr}, func(f *os.File) bool { return isatty.IsTerminal(f.Fd()) })
	go func() {
		for s := range signals {
			if key := s == syscall.SIGINT || s == syscall.SIGQUIT; !key || !keys {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		}
	}()
	return cmd.Wait()
}

// agent is the command, with the base URLs that known agents read.
func (c *runCmd) agent(ctx context.Context, at string, bases map[string]string) *exec.Cmd {
	args := c.Command[1:]
	if filepath.Base(c.Command[0]) == "codex" {
		args = append([]string{"-c", fmt.Sprintf("openai_base_url=%q", at+bases["OPENAI_BASE_URL"])}, args...)
	}
	cmd := exec.CommandContext(ctx, c.Command[0], args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, os.Environ()
	for name, path := range bases {
		cmd.Env = append(cmd.Env, name+"="+at+path)
	}
	return cmd
}

// mostRuns bounds the agents that run at once with their sessions kept.
const mostRuns = 64

// stateDir returns a directory for the sessions of agents on this machine that no other run has, until
// done. Without a place for it they are in a temporary one.
func stateDir() (dir string, done func(), err error) {
	state := os.Getenv("XDG_STATE_HOME")
	if home, err := os.UserHomeDir(); state == "" && err == nil {
		state = filepath.Join(home, ".local", "state")
	}
	for i := range mostRuns {
		dir := filepath.Join(state, "compactd", strconv.Itoa(i))
		if state == "" || os.MkdirAll(dir, 0o700) != nil {
			break
		}
		file, err := os.OpenFile(filepath.Join(dir, "run.lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			break
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			return dir, func() { _ = file.Close() }, nil
		}
		_ = file.Close()
	}
	dir, err = os.MkdirTemp("", "compactd-run-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
