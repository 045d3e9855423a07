package workertest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/redecide"
)

// LogEnd is the last sequence of the log.
func (env *Env) LogEnd() uint64 {
	env.T.Helper()
	s, err := env.JS.Stream(env.T.Context(), topology.LogStream)
	if err != nil {
		env.T.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

// Logged lists the events of a kind of a session.
func (env *Env) Logged(session string, k events.Kind) (out [][]byte) {
	env.T.Helper()
	a := events.Address{Tenant: "default", Session: session}
	subject := events.Logged(env.Streams.Partitions.Of(a), k, a)
	err := stream.ReadSubject(env.T.Context(), env.Conn, topology.LogStream, subject, 1, func(m stream.LogMessage) error {
		out = append(out, m.Data)
		return nil
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return out
}

// Lineage lists the messages of the turns of a session that are not retracted.
func (env *Env) Lineage(session string) []codec.Raw {
	env.T.Helper()
	var turns [][]codec.Raw
	for _, data := range env.Logged(session, events.KindTurn) {
		turn, err := events.DecodeTurn(data)
		if err != nil {
			env.T.Fatal(err)
		}
		if turn.ReplacesFrom > 0 {
			turns = turns[:turn.ReplacesFrom-1]
		}
		turns = append(turns, turn.Messages)
	}
	return slices.Concat(turns...)
}

// WantLineage compares that of a session.
func (env *Env) WantLineage(session string, want []codec.Raw) {
	env.T.Helper()
	if got := env.Lineage(session); events.OpenAI.DigestOf(got) != events.OpenAI.DigestOf(want) {
		env.T.Errorf("%s has %d messages, want %d:\n%.600s\n%.600s", session, len(got), len(want), got, want)
	}
}

// LoggedTurns counts the turns of a session in the log, also those that were retracted.
func (env *Env) LoggedTurns(session string) int { return len(env.Logged(session, events.KindTurn)) }

// BeginsWith reports whether messages begin with others, byte by byte.
func BeginsWith(messages, head []codec.Raw) bool {
	return len(messages) >= len(head) && slices.EqualFunc(messages[:len(head)], head, func(a, b codec.Raw) bool { return bytes.Equal(a, b) })
}

// State is that of a stream.
func (env *Env) State(stream string) topology.StreamState {
	env.T.Helper()
	s, err := topology.State(env.T.Context(), env.JS, stream)
	if err != nil {
		env.T.Fatal(err)
	}
	return s
}

// Replay decides recorded events again, by package redecide.
func (env *Env) Replay(s redecide.Span) *redecide.Replayed {
	env.T.Helper()
	r, err := redecide.Replay(env.T.Context(), env.Conn, s)
	if err != nil {
		env.T.Fatal(err)
	}
	return r
}

// Audit lists the entries of the audit log as action, caller, tenant and session, in order of these.
func (env *Env) Audit(s audit.Selection) (out []string) {
	env.T.Helper()
	if err := audit.Read(env.T.Context(), env.JS, s, func(e events.AuditEntry) error {
		who, _, _ := strings.Cut(e.Caller, " ")
		out = append(out, fmt.Sprintf("%s %s %s.%s", e.Action, who, e.Tenant, e.Session))
		if e.Time == 0 || e.V != events.Version || (who == "local" || who == "token") != strings.HasPrefix(e.From, "127.0.0.1:") {
			env.T.Errorf("entry %+v", e)
		}
		return nil
	}); err != nil {
		env.T.Fatal(err)
	}
	slices.Sort(out)
	return out
}
