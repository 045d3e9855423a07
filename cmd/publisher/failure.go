package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker"
	"compactd/internal/events"
	"compactd/internal/replay"
)

// Exit codes. docs/cli.md has them for people.
const (
	exitFailure = 1
	exitUsage   = 2
	exitRefused = 3 // by the contract or a worker: sending it again changes nothing
	exitNobody  = 4 // no server, no worker or no answer: it may succeed later
)

var (
	errRefused  = errors.New("the worker refused it")
	errNoAnswer = errors.New("no answer came in time; the event is stored, and publisher watch shows what becomes of it")
)

// failure is an error as it is told.
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
			f.exit = exitNobody
		}
	}
	switch {
	case errors.Is(err, errRefused):
		f.exit = exitRefused
	case errors.Is(err, nats.ErrNoServers):
		f.Hint, f.exit = "A worker has a server of its own: run worker in another terminal, then this again.", exitNobody
	case errors.Is(err, errNoAnswer), errors.Is(err, replay.ErrNoWorker), errors.Is(err, broker.ErrNoStreams),
		errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		f.exit = exitNobody
	}
	return f
}

// write tells a failure to people, or as one JSON object.
func (f failure) write(w io.Writer, asJSON bool) {
	if asJSON {
		if data, err := events.Marshal(f); err == nil {
			fmt.Fprintf(w, "%s\n", data)
			return
		}
	}
	fmt.Fprintf(w, "publisher: %s\n", f.Error)
	if f.Code != "" {
		fmt.Fprintf(w, "code: %s\n", f.Code)
	}
	if f.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", f.Hint)
	}
}
