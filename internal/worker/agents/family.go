package agents

import (
	"context"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/service"
)

// belongs reports whether session a is a branch of session of, or of one of its branches. It
// checks the name, and follows the forks in first turns in the log.
func belongs(ctx context.Context, nc *nats.Conn, of, a events.Address) (bool, error) {
	if of.Tenant != a.Tenant || !events.IsBranch(of.Session, a.Session) {
		return false, nil
	}
	for range events.MaxForks {
		var fork *events.Fork
		err := stream.ReadSubject(ctx, nc, topology.LogStream, events.LoggedAnywhere(events.KindTurn, a), 1, func(m stream.LogMessage) error {
			if turn, err := events.DecodeTurn(m.Data); err == nil { // an invalid turn was refused
				fork = turn.Fork
			}
			return stream.ErrEnd
		})
		switch {
		case err != nil:
			return false, err
		case fork == nil || fork.Session == of.Session:
			return fork != nil, nil
		}
		a.Session = fork.Session
	}
	return false, nil
}

// branchesOf returns the branches of a session in the log, with their branches.
func branchesOf(ctx context.Context, nc *nats.Conn, a events.Address) (out []events.Address, err error) {
	known := map[events.Address]bool{a: true}
	for next := []events.Address{a}; len(next) > 0; next = next[1:] {
		err := stream.ReadSubject(ctx, nc, topology.LogStream, events.LoggedAnywhere(events.KindBranch, next[0]), 1, func(m stream.LogMessage) error {
			b, err := events.Decode[events.Branch](m.Data)
			if err != nil { // it was overwritten
				return nil //nolint:nilerr // it names no branch
			}
			child := events.Address{Tenant: a.Tenant, Session: b.Branch}
			if events.IsBranch(a.Session, b.Branch) && !known[child] {
				known[child] = true
				out, next = append(out, child), append(next, child)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// above returns the sessions of which a session may be a branch, by its name.
func above(a events.Address) (out []events.Address) {
	name := events.SessionName(a.Session)
	for i := range name {
		if name[i] == '/' && i > 0 {
			if id, err := events.SessionID(name[:i]); err == nil {
				out = append(out, events.Address{Tenant: a.Tenant, Session: id})
			}
		}
	}
	return out
}

// has reports whether the follower receives the outcomes of a session. Only the writing goroutine
// calls it.
func (f *follower) has(a events.Address) (is bool, err error) {
	if a == f.at {
		return true, nil
	}
	known, ok := f.family[a.Session]
	if ok || !f.branches {
		return known, nil
	}
	err = f.reading(service.TurnMemory, func(ctx context.Context) (err error) {
		is, err = belongs(ctx, f.hub.js.Conn(), f.at, a)
		return err
	})
	if err == nil {
		if f.family == nil || len(f.family) >= maxQueue {
			f.family = map[string]bool{}
		}
		f.family[a.Session] = is
	}
	return is, err
}
