package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/request"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/access"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/replay"
	"compactd/internal/ops/term"
)

// Exit codes. docs/cli.md has them for people.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitRefused     = 3 // by the contract, a worker or the server: sending it again changes nothing
	exitUnavailable = 4 // no server, no worker or no answer: it may succeed later
)

var errNoAnswer = fmt.Errorf("no answer came in time; the event is stored, and %s watch shows its outcome", cli.Program("publisher"))

// forOperators are parts of the subjects that no tenant of deploy/cluster may use.
var forOperators = []string{`"` + events.SubjectTenants + `"`, `"` + events.SubjectPolicy + `"`, `"` + events.SubjectPolicies + `"`, "." + topology.AuditStream}

// refusedError is the rejection of a published event.
type refusedError struct{ rejected *events.Rejected }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the worker refused the %s at sequence %d: %s", e.rejected.Kind, e.rejected.Seq, e.rejected.Message)
}

// failure is an error as it is printed.
type failure struct {
	Error string      `json:"error"`
	Code  events.Code `json:"code,omitzero"`
	Hint  string      `json:"hint,omitzero"`
	exit  int
}

func failureOf(err error) failure {
	f := failure{Error: err.Error(), exit: exitFailure}
	if bad, ok := errors.AsType[*events.Invalid](err); ok {
		f.Code, f.Hint, f.exit = bad.Code(), bad.Hint(), exitRefused
	}
	if no, ok := errors.AsType[*events.ServiceError](err); ok {
		f.Code, f.Hint, f.exit = no.Code, no.Hint, exitRefused
		if no.Code == events.CodeUnavailable {
			f.exit = exitUnavailable
		}
	}
	if r, ok := errors.AsType[*refusedError](err); ok {
		f.Code, f.Hint, f.exit = r.rejected.Code, r.rejected.Hint, exitRefused
	}
	if c, ok := errors.AsType[*connect.Error](err); ok {
		f.connect(c)
	}
	if _, ok := errors.AsType[*stream.IDTakenError](err); ok {
		f.Code, f.exit = replay.CodeDuplicateID, exitRefused
		f.Hint = "If it was published before, it is stored: " + cli.Program("publisher") + " stats shows the session. Else give the event another id."
	}
	switch {
	case errors.Is(err, context.Canceled):
		f.Error = "interrupted; what was published before stays published"
	case errors.Is(err, nats.ErrPermissionViolation) && slices.ContainsFunc(forOperators, func(part string) bool { return strings.Contains(err.Error(), part) }):
		f.Code, f.Hint, f.exit = events.CodeForbidden, "The command is for operators: use --user operator of deploy/cluster, with its password in COMPACTD_NATS_PASSWORD.", exitRefused
	case errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), "$JS.API."):
		f.Code, f.Hint, f.exit = events.CodeForbidden, "The command reads the streams, which no tenant of deploy/cluster may: use a user without bounds, or another server.", exitRefused
	case errors.Is(err, nats.ErrPermissionViolation) && (strings.Contains(err.Error(), `"session.rewind.`) || strings.Contains(err.Error(), `"session.compact.`)):
		f.Code, f.Hint, f.exit = events.CodeForbidden, "Over NATS only the user of the tenant rewinds and compacts: see --tenant and --user. An operator does so at --http of a worker.", exitRefused
	case errors.Is(err, nats.ErrPermissionViolation):
		f.Code, f.Hint, f.exit = events.CodeForbidden, "The server keeps this user to its own tenant: see --tenant and --user, and deploy/cluster for what a tenant may do.", exitRefused
	case errors.Is(err, request.ErrNoWorker):
		f.Hint, f.exit = "Start one with: "+cli.Program("worker")+" --nats URL.", exitUnavailable
	case errors.Is(err, topology.ErrNoStreams), errors.Is(err, jetstream.ErrNoStreamResponse):
		f.Hint, f.exit = "The first worker that runs on this server makes the streams: "+cli.Program("worker")+" --nats URL.", exitUnavailable
	case jsapi.Full(err):
		f.Hint, f.exit = "Raise --max-bytes of the workers, or give the server more room; "+cli.Program("worker")+" inspect shows the bounds.", exitUnavailable
	case errors.Is(err, errNoAnswer), errors.Is(err, nats.ErrNoResponders), jsapi.NoAnswer(err):
		f.Hint, f.exit = "See whether the server, its disk and the workers are well: "+cli.Program("worker")+" doctor --nats URL.", exitUnavailable
	}
	return f
}

// toStore names the wait of a publish.
const toStore = "the server to store a turn"

// waiting returns what prints what a command waits for, every ten seconds at most.
func (f *flags) waiting(bar *term.Bar, what string) func(error) {
	sometimes := rate.Sometimes{First: 1, Interval: 10 * time.Second}
	return func(err error) {
		sometimes.Do(func() {
			bar.Clear()
			note := failureOf(err)
			note.Error = "waiting for " + what + ": " + note.Error
			note.write(os.Stderr, f.JSON)
		})
	}
}

// connect adds the hint for a failed connection.
func (f *failure) connect(e *connect.Error) {
	f.Hint = access.Hint(e)
	switch e.Cause {
	case connect.CauseServer:
		f.Hint, f.exit = "A worker has a server of its own: run "+cli.Program("worker")+" in another terminal, then this again. "+f.Hint, exitUnavailable
	case connect.CauseClosed:
		f.exit = exitUnavailable
	case connect.CauseUser:
		f.Code, f.exit = events.CodeUnauthorized, exitRefused
	}
}

// write prints a failure for people, or as one JSON object.
func (f failure) write(w io.Writer, asJSON bool) {
	if asJSON {
		if data, err := codec.Marshal(f); err == nil {
			fmt.Fprintf(w, "%s\n", data)
			return
		}
	}
	fmt.Fprintf(w, "%s: %s\n", cli.Program("publisher"), f.Error)
	if f.Code != "" {
		fmt.Fprintf(w, "code: %s\n", f.Code)
	}
	if f.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", f.Hint)
	}
}
