package agents

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/service"
)

// Lifetimes of a token of a session.
const (
	defaultExpiry = time.Hour
	minExpiry     = time.Minute
	maxExpiry     = 24 * time.Hour
)

var errNoKey = events.Refuse(events.CodeNotFound, "the worker signs no tokens of sessions", "Start all workers with --agents-signing-key and the same key, or write a line into the tokens file with worker token new --session.")

// mint answers with a token of a session, which depends on the token of the request. The token is signed and not
// stored: see docs/adr/0055.
func (e *Edge) mint(w http.ResponseWriter, r *http.Request) error {
	a, err := session(r)
	if err != nil {
		return err
	}
	if e.key == nil {
		return errNoKey
	}
	lasts, err := expiryOf(r)
	if err != nil {
		return err
	}
	own, expires := service.TokenOf(r), time.Now().Add(lasts)
	if !own.Expires.IsZero() && own.Expires.Before(expires) {
		expires = own.Expires
	}
	by := events.AuditEntry{Action: "token_minted", Caller: own.Name, From: r.RemoteAddr, Tenant: a.Tenant, Session: a.Session}
	if err := e.config.Service.Record(r.Context(), by, ""); err != nil {
		return err
	}
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/sessions/"), "/token")
	w.Header().Set("Cache-Control", "no-store")
	return service.Write(r.Context(), w, http.StatusOK, &events.TokenResponse{
		V: events.Version, Token: tokens.Sign(e.key, own.Hash, a, expires), Path: mcpPath + name, Expires: expires.Unix() * 1000,
	})
}

// expiryOf returns the requested lifetime of a token.
func expiryOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("expires_in_s")
	if text == "" {
		return defaultExpiry, nil
	}
	least, most := int64(minExpiry.Seconds()), int64(maxExpiry.Seconds())
	s, err := strconv.ParseInt(text, 10, 64)
	if err != nil || s < least || s > most {
		return 0, events.NewInvalid(events.CodeOutOfRange, "expires_in_s", fmt.Sprintf("must be between %d and %d", least, most))
	}
	return time.Duration(s) * time.Second, nil
}
