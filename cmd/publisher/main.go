// Command publisher plays an agent: it publishes turns, prints outcomes, and queries
// the workers.
package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/access"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/transcript"
)

// version is set by the linker.
var version = "dev"

// flags are the command line, with the environment as the default.
type flags struct {
	NATS string `name:"nats" env:"NATS_URL" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Server to connect to (${default})."`
	access.Flags
	Tenant  string           `env:"COMPACTD_TENANT" default:"default" help:"Tenant of the sessions (${default})."`
	JSON    bool             `env:"COMPACTD_JSON" help:"Print JSON, one object a line."`
	Color   term.When        `env:"COMPACTD_COLOR" default:"auto" enum:"auto,always,never" help:"Colour: on a terminal unless NO_COLOR is set, or always, or never (auto|always|never, default ${default})."`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Send   sendCmd   `cmd:"" help:"Publish one session.turn, read from a file or standard input."`
	Replay replayCmd `cmd:"" help:"Publish recorded sessions turn by turn, and report their compactions."`
	Load   loadCmd   `cmd:"" help:"Publish a fleet of synthetic agents, with the load shape of real sessions, and measure what they see; it needs a user without bounds."`
	Watch  watchCmd  `cmd:"" help:"Print outcomes as they are published."`
	Top    topCmd    `cmd:"" help:"Show the workers, the largest tenants and the fullest sessions, again and again."`

	Compact  compactCmd  `cmd:"" help:"Compact a session now, and print the answer."`
	Rewind   rewindCmd   `cmd:"" help:"Return a session to the view of an earlier generation."`
	Overflow overflowCmd `cmd:"" help:"Report that a provider refused a call as too long, and print the answer."`
	End      endCmd      `cmd:"" help:"End a session; its next turn begins a new one."`

	Sessions sessionsCmd `cmd:"" help:"List the sessions of the tenant, and how full they are."`
	Tenants  tenantsCmd  `cmd:"" help:"List the tenants: their sessions, tokens, money and refusals. For operators."`
	Policy   policyCmd   `cmd:"" help:"Set, print and list the policy of the tenant, which running workers follow. For operators."`

	Audit auditCmd `cmd:"" help:"Print who read content of sessions, and who compacted, rewound and erased them, changed policies or tokens. For operators."`

	Check  checkCmd  `cmd:"" help:"Check whether the next call of a session fits, with the messages to be added."`
	Attach attachCmd `cmd:"" help:"Print the files to send with the next call of a session: whole, cut, or summarized."`
	Files  filesCmd  `cmd:"" help:"List the files that a session has read and changed."`

	Context contextCmd `cmd:"" help:"Print the effective history of a session, as its agent should send it."`
	Recall  recallCmd  `cmd:"" help:"Print original messages of a session, also those that a compaction removed, or find a text in them."`
	History historyCmd `cmd:"" help:"Print when and why a session was compacted, and what a compaction changed."`
	Stats   statsCmd   `cmd:"" help:"Print the state of a session: turns, tokens, level."`

	cli.Commands

	tenantNamed bool // Tenant is not the default; set by main

	nc       *nats.Conn  // of the command, once it has connected; main closes it
	abort    func(error) // ends the command, which lacks a permission
	optional []string    // parts of permissions that the command can do without
	denied   atomic.Bool // one of the optional permissions was denied
}

// help is the text of --help beside the flags: of the program, and of each command.
//
//go:embed help/*.txt
var help embed.FS

// parser reads the command line into f.
func parser(f *flags) *kong.Kong {
	return cli.Arrange(kong.Must(f, kong.Name("publisher"), vars(), cli.Help(), kong.BindSingletonProvider((*flags).connect)),
		help, cli.Connection("nats"))
}

func vars() kong.Vars {
	formats := transcript.Formats()
	return kong.Vars{"version": version, "formats": strings.Join(formats, ","), "formatsBar": strings.Join(formats, "|")}
}

func main() {
	var f flags
	k := parser(&f)
	cmd, err := k.Parse(os.Args[1:])
	if err != nil {
		help := cli.HelpOf(err, k.Model, os.Args[1:])
		if slices.Contains(os.Args, "--json") {
			failure{Error: err.Error(), Hint: "See " + help + "."}.write(os.Stderr, true)
		} else {
			k.Errorf("%s; see %s", err, help)
		}
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, f.abort = context.WithCancelCause(ctx)
	cmd.BindTo(ctx, (*context.Context)(nil))
	f.tenantNamed = os.Getenv("COMPACTD_TENANT") != "" || cli.Given(cmd, "tenant")
	if err = f.address(events.Unknown).Validate(); err == nil {
		err = cmd.Run(&f)
	}
	if f.nc != nil {
		f.nc.Close()
	}
	if denied := context.Cause(ctx); errors.Is(denied, nats.ErrPermissionViolation) {
		err = denied // else the command would time out
	}
	stop()
	if err != nil {
		failed := failureOf(err)
		failed.write(os.Stderr, f.JSON)
		os.Exit(failed.exit)
	}
}

// connect returns the connection of the command. A Run with such a parameter gets it from kong; another connects
// when it has read its files.
func (f *flags) connect(ctx context.Context) (nc *nats.Conn, err error) {
	if f.nc == nil {
		f.nc, err = connect.Open(ctx, f.With(connect.Options{URL: f.NATS, Name: "compactd publisher", OnError: f.onConnError}))
	}
	return f.nc, err
}

// send sends one request to the workers.
func (f *flags) send(ctx context.Context, subject string, in, out any) error {
	nc, err := f.connect(ctx)
	if err != nil {
		return err
	}
	return request.Send(ctx, nc, subject, in, out)
}

// onConnError ends the command when the server does not let it publish or subscribe,
// unless the permission is optional.
func (f *flags) onConnError(err error) {
	switch {
	case !errors.Is(err, nats.ErrPermissionViolation):
	case strings.Contains(err.Error(), `"`+events.SubjectFleet+`"`): // see [request.SubjectOf]
	case slices.ContainsFunc(f.optional, func(part string) bool { return strings.Contains(err.Error(), part) }):
		f.denied.Store(true)
	default:
		f.abort(err)
	}
}

// address is that of a session of the tenant.
func (f *flags) address(session named.Session) events.Address {
	return events.Address{Tenant: f.Tenant, Session: string(session)}
}

// show prints v for programs, or what table writes for people.
func (f *flags) show(v any, table func(io.Writer) error) error {
	if f.JSON {
		return term.JSON(v)
	}
	return table(f.screen())
}

// screen is the terminal for a command's output.
func (f *flags) screen() *term.Screen { return term.Open(os.Stdout, f.Color) }

// requireKnown returns the error of a session that has no turns.
func requireKnown(known bool, a events.Address) error {
	if known {
		return nil
	}
	return events.NewInvalid(events.CodeUnknownSession, "", named.Show(a)+" is unknown: no turn of it was taken")
}

// showKnown prints the answer about a session. For one that has no turns people get the
// error alone; programs get answer and error.
func (f *flags) showKnown(known bool, a events.Address, v any, table func(io.Writer) error) error {
	if !known && !f.JSON {
		return requireKnown(known, a)
	}
	return cmp.Or(f.show(v, table), requireKnown(known, a))
}
