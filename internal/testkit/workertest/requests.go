package workertest

import (
	"fmt"

	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Request sends a request to the service. A refusal is returned; anything else that is not an
// answer fails the test.
func (env *Env) Request(subject, in string, out any) *events.ServiceError {
	env.T.Helper()
	m, err := env.Conn.Request(subject, []byte(in), WaitLimit)
	if err != nil {
		env.T.Fatalf("%s %s: %v", subject, in, err)
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		e := &events.ServiceError{}
		if err := codec.Unmarshal(m.Data, e); err != nil {
			env.T.Fatal(err)
		}
		if string(e.Code) != code || e.Message != m.Header.Get(micro.ErrorHeader) || e.V != events.Version {
			env.T.Errorf("%s %s: headers %v, payload %+v", subject, in, m.Header, e)
		}
		return e
	}
	if err := codec.Unmarshal(m.Data, out); err != nil {
		env.T.Fatal(err)
	}
	return nil
}

// Context requests one page and fails the test on a refusal.
func (env *Env) Context(session string, page int) events.ContextResponse {
	env.T.Helper()
	var out events.ContextResponse
	if e := env.Request(events.SubjectContext, fmt.Sprintf(`{"session":%q,"page":%d}`, session, page), &out); e != nil {
		env.T.Fatalf("context %s, page %d: %s %s", session, page, e.Code, e.Message)
	}
	return out
}

// ContextMessages requests all pages of a context.
func (env *Env) ContextMessages(session string) []codec.Raw {
	env.T.Helper()
	var out []codec.Raw
	for page := 1; ; page++ {
		reply, err := env.Conn.Request("compactd.context", fmt.Appendf(nil, `{"session":%q,"page":%d}`, session, page), WaitLimit)
		if err != nil {
			env.T.Fatal(err)
		}
		var c events.ContextResponse
		if err := codec.Unmarshal(reply.Data, &c); err != nil {
			env.T.Fatal(err)
		}
		if out = append(out, c.Messages...); int64(page) >= c.Pages {
			return out
		}
	}
}

// Stats requests the stats of a session of the tenant default.
func (env *Env) Stats(session string) events.StatsResponse {
	env.T.Helper()
	var out events.StatsResponse
	if e := env.Request(events.SubjectStats, fmt.Sprintf(`{"session":%q}`, session), &out); e != nil {
		env.T.Fatalf("stats %s: %s %s", session, e.Code, e.Message)
	}
	return out
}

// History requests the newest compactions of a session.
func (env *Env) History(session string, limit int) events.HistoryResponse {
	env.T.Helper()
	var out events.HistoryResponse
	if e := env.Request(events.SubjectHistory, fmt.Sprintf(`{"session":%q,"limit":%d}`, session, limit), &out); e != nil {
		env.T.Fatalf("history %s: %s %s", session, e.Code, e.Message)
	}
	return out
}

// Recall requests originals and fails the test on a refusal.
func (env *Env) Recall(in string) events.RecallResponse {
	env.T.Helper()
	var out events.RecallResponse
	if e := env.Request(events.SubjectRecall, in, &out); e != nil {
		env.T.Fatalf("recall %s: %s %s", in, e.Code, e.Message)
	}
	return out
}

// Listed requests all sessions in pages of a limit, with what else selects them, and returns the last page too.
func (env *Env) Listed(selected string, limit int) (all []events.SessionSummary, last events.SessionsResponse) {
	env.T.Helper()
	for after := ""; ; {
		last = events.SessionsResponse{}
		if e := env.Request(events.SubjectSessions, fmt.Sprintf(`{%s,"limit":%d,"after":%q}`, selected, limit, after), &last); e != nil {
			env.T.Fatalf("%s after %q: %s %s", selected, after, e.Code, e.Message)
		}
		if len(last.Sessions) > limit {
			env.T.Errorf("%s after %q: %d sessions, at most %d were wanted", selected, after, len(last.Sessions), limit)
		}
		if all = append(all, last.Sessions...); last.After == nil {
			return all, last
		}
		after = last.After.String()
	}
}
