// Command publisher plays an agent: it publishes turns and shows what the
// workers tell.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/events"
)

// version is set by the linker.
var version = "dev"

// flags are the command line, with the environment as the default.
type flags struct {
	NATS string `name:"nats" env:"NATS_URL" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Server to connect to (${default})."`
	access
	Tenant  string           `env:"COMPACTD_TENANT" default:"default" help:"Tenant of the sessions (${default})."`
	JSON    bool             `env:"COMPACTD_JSON" help:"Print JSON, one object a line."`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Send   sendCmd   `cmd:"" help:"Publish one session.turn, read from a file or standard input."`
	Replay replayCmd `cmd:"" help:"Publish recorded sessions turn by turn and report what became of them."`
	Watch  watchCmd  `cmd:"" help:"Print outcomes as they are told."`

	Compact  compactCmd  `cmd:"" help:"Compact a session now, and print the answer."`
	Rewind   rewindCmd   `cmd:"" help:"Return a session to the view of an earlier generation."`
	Overflow overflowCmd `cmd:"" help:"Report that a provider refused a call as too long, and print the answer."`
	End      endCmd      `cmd:"" help:"Say that a session is over; its next turn begins a new one."`

	Context contextCmd `cmd:"" help:"Print the effective history of a session, as its agent should send it."`
	Recall  recallCmd  `cmd:"" help:"Print original messages of a session, whatever a compaction has made of them, or find a text in them."`
	Stats   statsCmd   `cmd:"" help:"Print how a session stands: turns, tokens, level."`
}

const description = `Publishes turns to compactd and shows what it tells.

Examples:
  publisher replay examples/sessions
  publisher replay --speed 20 session.jsonl.gz
  echo '{"messages":[{"role":"user","content":"hi"}]}' | publisher send --session s1
  publisher watch --session s1 --json
  publisher context --session s1
  publisher recall --session s1 --turn 7 --index 2
  publisher recall --session s1 --text 'no such file'
  publisher stats --session s1
  publisher compact --session s1 "the failing test"
  publisher rewind --session s1
  echo 'prompt is too long: 219898 tokens > 200000 maximum' | publisher overflow --session s1 --status 400

Exit codes: 0 done, 1 failure, 2 wrong usage.`

func main() {
	var f flags
	k := kong.Must(&f, kong.Name("publisher"), kong.Description(description), kong.Vars{"version": version})
	cmd, err := k.Parse(os.Args[1:])
	if err != nil {
		k.Errorf("%s; see publisher --help", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	cmd.BindTo(ctx, (*context.Context)(nil))
	err = cmd.Run(&f)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "publisher: %v\n", err)
		if bad, ok := errors.AsType[*events.Invalid](err); ok {
			fmt.Fprintf(os.Stderr, "code: %s\nhint: %s\n", bad.Code(), bad.Hint())
		}
		if no, ok := errors.AsType[*events.ServiceError](err); ok {
			fmt.Fprintf(os.Stderr, "code: %s\nhint: %s\n", no.Code, no.Hint)
		}
		os.Exit(1)
	}
}

// connect opens the connection of one command.
func (f *flags) connect(ctx context.Context) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := broker.Connect(ctx, f.with(broker.Options{URL: f.NATS, Name: "compactd publisher"}))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	return nc, js, err
}

// printJSON writes one object on a line of its own.
func printJSON(v any) error {
	data, err := events.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(data))
	return err
}
