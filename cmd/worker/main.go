// Command worker serves the sessions of a fleet of agents: it keeps their token
// budgets and publishes session.compacted before they overflow. One program serves a
// laptop and a fleet: see docs/adr/0019.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/exact"
	"compactd/internal/ops/access"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/term"
	"compactd/internal/policyfile"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
)

// version is set by the linker.
var version = "dev"

// flags are the command line, with the environment as the default.
type flags struct {
	NATS string `name:"nats" env:"NATS_URL" placeholder:"URL" help:"Server to connect to. Absent, or with --listen: one is embedded."`
	access.Flags

	Listen     string `env:"COMPACTD_LISTEN" default:"127.0.0.1:4222" placeholder:"HOST:PORT" help:"Client port of the embedded server; port -1 picks a free one (${default}). On the command line it beats NATS_URL."`
	Data       string `env:"COMPACTD_DATA" default:"data" type:"path" placeholder:"DIR" help:"Directory of the ledgers, and of the embedded server (${default})."`
	Durability string `env:"COMPACTD_DURABILITY" default:"process" enum:"process,power" help:"Failure that an acknowledged turn survives: a crash of the process, or a power loss too (process|power, default ${default})."`
	Partitions int    `env:"COMPACTD_PARTITIONS" default:"${partitions}" help:"Partitions of a new log; an existing one keeps its own (${default})."`

	Replicas int `env:"COMPACTD_REPLICAS" default:"1" placeholder:"N" help:"Servers of a cluster that hold each new stream, 3 or 5 to survive the loss of one or two; an existing one keeps its own (${default})."`

	MaxBytes maxBytes `name:"max-bytes" env:"COMPACTD_MAX_BYTES" placeholder:"SIZE" help:"Most that each of the streams SESSIONS and OUTCOMES holds, such as 20GiB; 150GB,50GB for one each. Absent: a new stream gets up to 20 GiB, as far as the server and the account have room; an existing one keeps its own."`

	LeaseTTL time.Duration `name:"lease-ttl" env:"COMPACTD_LEASE_TTL" default:"${leaseTTL}" placeholder:"TIME" help:"How long after the crash of a worker its partitions are acquired by another one, in whole seconds (${default})."`

	DrainTimeout time.Duration `name:"drain-timeout" env:"COMPACTD_DRAIN_TIMEOUT" default:"${drainTimeout}" placeholder:"TIME" help:"How long a stop may take, with or without the server: it commits what is decided, and hands over (${default})."`

	SnapshotEvery time.Duration `name:"snapshot-every" env:"COMPACTD_SNAPSHOT_EVERY" default:"5m" placeholder:"TIME" help:"How often copies of the ledger files go to the server, for workers that have none; 0 is never (${default})."`

	Memory memorySize `env:"COMPACTD_MEMORY" placeholder:"SIZE" help:"Soft limit of the process's memory, such as 512MiB. GOMEMLIMIT overrides it. Absent: half of what the control group or the machine has, 1 GiB at most."`

	Policy            []string `env:"COMPACTD_POLICY" default:"default" sep:"none" placeholder:"NAME|FILE" help:"A preset (claude, default, neurolink) or a YAML or JSON file (${default}); replay compares several."`
	Set               []string `env:"COMPACTD_SET" sep:";" placeholder:"PATH=VALUE" help:"Set one field of the policy, such as prune.enabled=false. Can be repeated; in the environment a ; separates them."`
	CompactThreshold  string   `env:"COMPACTD_COMPACT_THRESHOLD" placeholder:"SHARE" help:"Share of the available input at which a session is compacted (0.8)."`
	DisableCompaction bool     `env:"COMPACTD_DISABLE_COMPACTION" help:"Publish levels only, and compact nothing unless it is requested."`
	Lock              []string `env:"COMPACTD_LOCK" placeholder:"PATH" help:"A field of the policy that sessions cannot set, such as summarize.enabled, or a group. Can be repeated; what the flags above set is locked anyway."`
	Unlock            []string `env:"COMPACTD_UNLOCK" placeholder:"PATH" help:"A field, or a group, that sessions can set although a flag sets it or the policy locks it."`
	Counter           string   `env:"COMPACTD_COUNTER" default:"estimate" enum:"estimate,o200k,cl100k" help:"How tokens are counted: estimated, or by a table of OpenAI's, exact for its models and some hundred times slower (estimate|o200k|cl100k, default ${default})."`
	Prices            string   `env:"COMPACTD_PRICES" type:"path" placeholder:"FILE" help:"JSON file with prices of models (docs/what-if.md). They add to the built-in prices, and replace those of the same name."`
	MaxLedgers        int      `env:"COMPACTD_MAX_LEDGERS" default:"${maxLedgers}" placeholder:"N" help:"Sessions held in memory; others are read from disk when they are needed (${default})."`

	Summarizer string `env:"COMPACTD_SUMMARIZER" default:"embedded" placeholder:"LIST" help:"Models that write summaries: provider/model, separated by commas and tried in order; the embedded summarizer is always last (${default}). COMPACTD_<PROVIDER>_* set keys and more: docs/summaries.md."`

	TenantCallsPerMinute int `env:"COMPACTD_TENANT_CALLS_PER_MINUTE" default:"0" placeholder:"N" help:"Calls of models a minute for each tenant, in all workers together; beyond them the embedded summarizer writes. 0 is no bound."`
	TenantTokensPerHour  int `env:"COMPACTD_TENANT_TOKENS_PER_HOUR" default:"0" placeholder:"N" help:"Input and output tokens an hour for each tenant, in the same way."`

	TenantOutcomesPerHour hourlyBytes `env:"COMPACTD_TENANT_OUTCOMES_PER_HOUR" placeholder:"SIZE" help:"Bytes of session.compacted that OUTCOMES takes an hour for each tenant, such as 1GiB; beyond them its compactions have no messages. off is no bound. Absent: a 64th of the bound of OUTCOMES, 256 MiB at least."`

	HTTP      string        `name:"http" env:"COMPACTD_HTTP" default:"${defaultHTTP}" placeholder:"HOST:PORT" help:"Where /healthz, /readyz, /metrics and requests under /v1 are answered; port -1 picks a free one, off is none (${default})."`
	HTTPToken access.Secret `name:"http-token" env:"COMPACTD_HTTP_TOKEN" placeholder:"TOKEN" help:"Token that a request over HTTP must carry as Authorization: Bearer. Required when --http is not on loopback. Every user of this machine can read a command line: set it in the environment, or in a file."`

	HTTPTokenFile access.File `name:"http-token-file" env:"COMPACTD_HTTP_TOKEN_FILE" placeholder:"FILE" help:"File that holds the token of --http-token and nothing else."`

	Traces string `env:"COMPACTD_TRACES" placeholder:"URL" help:"Receiver of spans by OTLP over HTTP, such as http://127.0.0.1:4318, with the headers of OTEL_EXPORTER_OTLP_HEADERS. Absent: OTEL_EXPORTER_OTLP_ENDPOINT, or none."`

	Open bool `env:"COMPACTD_OPEN" help:"Open the console in a browser once the worker is ready."`

	agentsFlags

	LogFormat string           `env:"COMPACTD_LOG_FORMAT" default:"${logFormat}" enum:"console,json" help:"Form of the log (console|json, default ${default})."`
	Color     term.When        `env:"COMPACTD_COLOR" default:"auto" enum:"auto,always,never" help:"Colour of what a command prints: on a terminal unless NO_COLOR is set, or always, or never (auto|always|never, default ${default})."`
	Version   kong.VersionFlag `help:"Print the version and exit."`

	Serve      serveCmd  `cmd:"" default:"withargs" help:"Serve sessions; this is what worker does without a command."`
	ShowPolicy policyCmd `cmd:"" uses:"Policy" name:"policy" help:"Print the policy in force, and where each value comes from."`

	Gateway gatewayCmd `cmd:"" help:"Proxy the calls of agents to their providers and compact their histories: an agent changes only its base URL."`

	Run runCmd `cmd:"" help:"Run an agent behind a gateway of its own, and print the saving."`

	Try tryCmd `cmd:"" help:"Serve a fake model with a small window, and compactd in front of it, to see compactions with an agent of your own."`

	Inspect inspectCmd `cmd:"" uses:"Connection,data,listen" help:"Print partitions, owners, cursors, lag and ledger files; changes nothing."`
	Replay  replayCmd  `cmd:"" uses:"Connection,Policy,data,listen" help:"Show how recorded sessions would have been compacted, check a log by deciding it again, or compare policies; changes nothing."`
	Doctor  doctorCmd  `cmd:"" uses:"Connection,data,listen,http,http-token,http-token-file" help:"Check server, streams, clock, disk and ledger files, with a hint for each problem; changes nothing, and exits with 1 when there is a problem."`
	Hash    hashCmd    `cmd:"" uses:"" name:"hash-password" help:"Print the bcrypt hash of a password on standard input, as nats-server takes it."`
	Ready   readyCmd   `cmd:"" uses:"http,http-token,http-token-file" help:"Check whether the worker on --http is ready, and exit with 1 when it is not: a probe."`

	PartitionsOf partitionsCmd `cmd:"" uses:"Connection,data,listen" name:"partitions" help:"List the partitions of the log, and double them."`

	Token  tokenCmd  `cmd:"" uses:"agents-tokens,agents-signing-key" help:"Make, list and revoke tokens of agents, models and operators over HTTP, in the file of --agents-tokens."`
	Forget forgetCmd `cmd:"" uses:"Connection,data,listen" help:"Erase a session: from the log, the outcomes, the ledgers and their copies. For the operator; it cannot be undone."`

	cli.Commands

	settings *policyfile.Settings // of the flags above, set by Validate
	models   []model.Model        // of --summarizer, set by Validate

	tokenInArgs bool // --http-token is on the command line; set by Validate

	dataGiven bool // --data is not the default; set by Validate
	natsGiven bool // --nats is on the command line; set by Validate

	abort    func(error) // ends a command whose user lacks a permission
	optional string      // part of a permission that the command can do without

	onReady func(agents string) // is called with the address of the listener for agents; nil for none
}

// help is the text of --help beside the flags: of the program, and of each command.
//
//go:embed help/*.txt
var help embed.FS

// parser reads the command line into f.
func parser(f *flags, logFormat string) *kong.Kong {
	k := kong.Must(f, kong.Name("worker"), cli.Help(),
		kong.Vars{
			"version": version, "logFormat": logFormat, "defaultHTTP": defaultHTTP,
			"leaseTTL": worker.DefaultLeaseTTL.String(), "drainTimeout": worker.DefaultDrainTimeout.String(), "maxLedgers": fmt.Sprint(worker.DefaultMaxLedgers),
			"partitions": fmt.Sprint(topology.DefaultPartitions), "agentsRate": fmt.Sprint(agents.DefaultRate),
		})
	return cli.Arrange(k, help, cli.Connection("nats"),
		cli.Group{Title: "Streams and files", Flags: []string{"listen", "data", "durability", "partitions", "replicas", "max-bytes", "lease-ttl", "drain-timeout", "snapshot-every", "memory"}},
		cli.Group{Title: "Policy", Flags: []string{"policy", "set", "compact-threshold", "disable-compaction", "lock", "unlock", "counter", "prices", "max-ledgers"}},
		cli.Group{Title: "Summaries and tenants", Flags: []string{"summarizer", "tenant-calls-per-minute", "tenant-tokens-per-hour", "tenant-outcomes-per-hour"}},
		cli.Group{Title: "HTTP and traces", Flags: []string{"http", "http-token", "http-token-file", "open", "traces"}},
		cli.Group{Title: "Agents over HTTP", Flags: []string{"agents", "agents-tokens", "agents-signing-key", "agents-tls-cert", "agents-tls-key", "agents-origin", "agents-rate", "agents-creds", "agents-user", "agents-password"}})
}

func main() {
	logFormat := "json"
	if isatty.IsTerminal(os.Stderr.Fd()) {
		logFormat = "console"
	}
	var f flags
	k := parser(&f, logFormat)
	cmd, err := k.Parse(os.Args[1:])
	if err != nil {
		k.Errorf("%s; see %s", err, cli.HelpOf(err, k.Model, os.Args[1:]))
		os.Exit(2)
	}
	log := newLogger(f.LogFormat, term.Open(os.Stderr, f.Color).Colors())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	ctx, f.abort = context.WithCancelCause(ctx)
	cmd.BindTo(ctx, (*context.Context)(nil))
	err = cmd.Run(&f, log)
	if denied := context.Cause(ctx); errors.Is(denied, nats.ErrPermissionViolation) {
		err = denied // else the command would time out
	}
	stop()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok { // the agent has printed why
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			os.Exit(128 + int(status.Signal()))
		}
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		f.report(log, cmd.Command() == "serve", err)
		os.Exit(exitCode(err))
	}
}

func newLogger(format string, colors bool) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	if format == "json" {
		return zerolog.New(os.Stderr).With().Timestamp().Logger()
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly, NoColor: !colors}).With().Timestamp().Logger()
}

// dataOf is a directory below --data.
func (f *flags) dataOf(name string) string { return filepath.Join(f.Data, name) }

// Validate finds wrong usage that kong cannot find.
func (f *flags) Validate(k *kong.Context) error {
	f.dataGiven = cli.Given(k, "data") || os.Getenv("COMPACTD_DATA") != ""
	f.natsGiven = cli.Given(k, "nats")
	if err := f.chooseServer(k); err != nil {
		return err
	}
	switch {
	case f.MaxLedgers < 1:
		return errors.New("--max-ledgers must be 1 or more")
	case f.Partitions < 1:
		return errors.New("--partitions must be 1 or more")
	case f.Replicas != 1 && f.NATS == "":
		return errors.New("--replicas needs the servers of a cluster, which --nats names: the embedded one is alone")
	case f.TenantCallsPerMinute < 0 || f.TenantTokensPerHour < 0:
		return errors.New("--tenant-calls-per-minute and --tenant-tokens-per-hour must be 0, for no bound, or more")
	case f.LeaseTTL < time.Second || f.LeaseTTL%time.Second != 0:
		return errors.New("--lease-ttl must be 1s or more, in whole seconds")
	case f.DrainTimeout < time.Second:
		return errors.New("--drain-timeout must be 1s or more")
	case f.SnapshotEvery < 0 || f.SnapshotEvery > 0 && f.SnapshotEvery < time.Second:
		return errors.New("--snapshot-every must be 0, for never, or 1s or more")
	case f.AgentsRate < 1:
		return errors.New("--agents-rate must be 1 or more")
	}
	if err := f.readToken(k); err != nil {
		return err
	}
	var err error
	if f.models, err = provider.Open(f.Summarizer, os.Getenv); err != nil {
		return fmt.Errorf("--summarizer: %w", err)
	}
	if len(f.Policy) > 1 && !strings.HasPrefix(k.Command(), "replay") {
		return errors.New("--policy is given more than once; only replay compares several")
	}
	f.settings, err = f.load(f.Policy[0])
	return err
}

// load puts a policy and the flags about it together.
func (f *flags) load(policy string) (*policyfile.Settings, error) {
	s, err := policyfile.Load(policyfile.Options{
		Policy: policy, Set: f.Set, Threshold: f.CompactThreshold, Disable: f.DisableCompaction,
		Lock: f.Lock, Unlock: f.Unlock,
	})
	if err == nil && f.Prices != "" {
		s.Config, err = f.priced(s.Config)
	}
	if err != nil || f.Counter == "estimate" {
		return s, err
	}
	by, err := exact.New(f.Counter)
	if err != nil {
		return nil, err
	}
	s.Config, err = s.Config.WithCounter(by)
	return s, err
}

// lay lays what operators set for tenants over the policy of this worker.
func (f *flags) lay(texts map[string][]byte) (*compaction.Config, map[string]error, error) {
	s, wrong, err := f.settings.WithTenants(texts)
	if err != nil {
		return nil, nil, err
	}
	return s.Config, wrong, nil
}

// priced is a config with the prices of a file.
func (f *flags) priced(c *compaction.Config) (*compaction.Config, error) {
	data, err := os.ReadFile(f.Prices)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w", err)
	}
	prices, err := measure.ReadPrices(data)
	if err == nil {
		c, err = c.WithPrices(prices)
	}
	if err != nil {
		return nil, fmt.Errorf("--prices %s: %w", f.Prices, err)
	}
	return c, nil
}

// exitUnknown is the exit code of a command about a session that is not there: the same
// as that of publisher.
const exitUnknown = 3

// exitCode is the exit code of a command that failed: where it starts another one, as that of a shell.
func exitCode(err error) int {
	if _, unknown := errors.AsType[*unknownError](err); unknown {
		return exitUnknown
	}
	switch {
	case !starts(err):
		return 1
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return 127
	}
	return 126
}

// starts reports whether a command could not be started.
func starts(err error) bool {
	_, found := errors.AsType[*exec.Error](err)
	return found || errors.Is(err, syscall.ENOEXEC)
}

// report logs why serving ended, and prints why another command failed.
func (f *flags) report(log zerolog.Logger, serving bool, err error) {
	hint, code := f.hintFor(err, serving), codeOf(err)
	if serving {
		failed := log.Error().Err(err)
		if code != "" {
			failed = failed.Str("code", string(code))
		}
		if hint != "" {
			failed = failed.Str("hint", hint)
		}
		failed.Msg("worker failed")
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", cli.Program("worker"), err)
	if code != "" {
		fmt.Fprintf(os.Stderr, "code: %s\n", code)
	}
	if hint != "" {
		fmt.Fprintf(os.Stderr, "hint: %s\n", hint)
	}
}

// codeOf is the code of an error, "" for none.
func codeOf(err error) events.Code {
	if errors.Is(err, nats.ErrPermissionViolation) {
		return events.CodeForbidden
	}
	if refused, ok := errors.AsType[*growthError](err); ok {
		return refused.code
	}
	return ""
}

// hintFor is the next step after an error, "" where none is known.
func (f *flags) hintFor(err error, serving bool) string {
	var known interface{ Hint() string }
	_, small := errors.AsType[*topology.StorageError](err)
	file, _ := errors.AsType[*fs.PathError](err)
	switch denied := errors.Is(err, nats.ErrPermissionViolation); {
	case denied && serving:
		return "Use a user with the permissions of worker in deploy/cluster/accounts.conf: --user, with its password in COMPACTD_NATS_PASSWORD."
	case denied:
		return "The server keeps this user from it: use the operator's, or a worker's, of deploy/cluster. A tenant sees its sessions with " + cli.Program("publisher") + " sessions."
	case errors.As(err, &known):
		return known.Hint()
	case access.Hint(err) != "":
		return access.Hint(err)
	case file != nil && file.Path == f.AgentsTokens:
		return "The file of --agents-tokens is made by: " + cli.Program("worker") + " token new --tenant NAME --agents-tokens FILE."
	case file != nil && (strings.HasPrefix(file.Path, f.Data) || strings.HasPrefix(f.Data, file.Path)):
		return "The files of a worker are in --data: name a directory that this user may write."
	case small:
		return "Lower --max-bytes, or give the server or the account more storage."
	}
	return ""
}
