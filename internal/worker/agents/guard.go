package agents

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// guard passes on requests with a clean path and a valid token, of the file or of a session. The func
// session checks the tenant of a path, and permit that of a list.
func (e *Edge) guard(next http.Handler) http.Handler {
	g := &service.Guard{NoToken: errNoToken, Page: e.crossOrigin, Refuse: e.refuse}
	g.Find = func(secret string) *tokens.Entry { return e.tokens.Load().Find(e.key, secret, time.Now()) }
	return g.Before(func(w http.ResponseWriter, r *http.Request) {
		t := service.TokenOf(r)
		op := e.limiter.Begin(limit.Account{Tenant: t.Tenant, Part: t.Part})
		defer op.End()
		next.ServeHTTP(w, r.WithContext(op.With(r.Context())))
	})
}

// refuse returns the refusal of a request, or nil to pass it on.
func (e *Edge) refuse(h http.Header, r *http.Request, t *tokens.Entry) *events.ServiceError {
	switch {
	case !clean(r):
		return errNoPath
	case t.Role == tokens.RoleSession && !strings.HasPrefix(r.URL.EscapedPath(), mcpPath):
		return errSessionToken
	case t.Role != tokens.RoleSession && strings.HasPrefix(r.URL.EscapedPath(), mcpPath):
		return errOtherSession
	case !t.Rate.Allow():
		h.Set("Retry-After", "1")
		return events.Refuse(events.CodeRateLimited, "the token has sent more than "+strconv.Itoa(e.config.Rate)+" requests a second", "Send fewer, or wait.")
	}
	return nil
}

// clean reports whether a path is clean: the router would answer any other path with a
// redirect, which clients follow with another method.
func clean(r *http.Request) bool {
	p := r.URL.EscapedPath()
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}

// crossOrigin refuses requests of browser pages whose origin is not configured.
func (e *Edge) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool, refused *events.ServiceError) {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false, nil
	}
	if len(origins) > 1 || !slices.Contains(e.config.Origins, origins[0]) {
		return false, events.Refuse(events.CodeForbidden, "pages of this origin may not send requests", "Send it from a program, or name the origin with --agents-origin.")
	}
	h := w.Header()
	h.Set(service.AllowOrigin, origins[0])
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID")
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Vary", "Origin")
	return false, nil
}

// record records that an operator reads content of a session, before it is answered.
func (e *Edge) record(r *http.Request, action string, a events.Address) error {
	t := service.TokenOf(r)
	if t.Role != tokens.RoleOperator {
		return nil
	}
	return e.config.Service.Record(r.Context(), events.AuditEntry{Action: action, Caller: t.Name, From: r.RemoteAddr, Tenant: a.Tenant, Session: a.Session}, "")
}

// session returns the session of a path, for a token that may use its tenant. The path has a name,
// which may be any text; the address has the id that follows from it.
func session(r *http.Request) (events.Address, error) {
	a := events.Address{Tenant: r.PathValue("tenant")}
	if !service.TokenOf(r).MayUse(a.Tenant) { // before any read, so that nothing reveals what exists there
		return a, errOtherTenant
	}
	var err error
	if a.Session, err = events.SessionID(r.PathValue("session")); err != nil {
		return a, err
	}
	return a, a.Validate()
}

var (
	errNoToken      = events.Refuse(events.CodeUnauthorized, "a token is required that is in the tokens file and has not expired", "Send one header Authorization: Bearer TOKEN.")
	errOtherTenant  = events.Refuse(events.CodeForbidden, "the token is of another tenant", "Name the tenant of the token in the path.")
	errSessionToken = events.Refuse(events.CodeForbidden, "the token is of one session, for its model over /mcp", "Send it with a token of the tenant, which worker token new --tenant NAME makes.")
	errNoPath       = events.Refuse(events.CodeNotFound, "there is no such path", "See docs/http.md; a path has no empty, . or .. parts, and a / of a name is written %2F.")
)
