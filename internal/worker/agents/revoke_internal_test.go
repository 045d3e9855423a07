package agents

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"golang.org/x/time/rate"

	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// A token that is revoked while its follower waits to join gets no events: the followers are not searched again
// after the revocation.
func TestRevokedWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(limit.Config{})
		e := &Edge{hub: NewHub(nil, l), limiter: l, config: Config{Rate: 1}}
		hash := tokens.HashOf("secret")
		in := &tokens.Set{hash: {Token: tokens.Token{Hash: hash, Tenant: "acme", Role: tokens.RoleAgent}, Rate: rate.NewLimiter(1, 1)}}
		e.tokens.Store(in)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sessions/acme/s/events", http.NoBody)
		r.Header.Set("Authorization", "Bearer secret")
		r.SetPathValue("tenant", "acme")
		r.SetPathValue("session", "s")
		w := httptest.NewRecorder()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			e.guard(service.Handler(e.stream)).ServeHTTP(w, r)
		}()
		synctest.Wait() // it passed the guard, and waits for the hub
		e.tokens.Store(&tokens.Set{})
		e.hub.revoke(tokens.Set{})
		e.hub.mu.Lock()
		e.hub.running = true
		e.hub.mu.Unlock()
		<-answered
		if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" || l.Held(limit.Streams) != 0 {
			t.Errorf("%d %s, %d connections", w.Code, w.Body, l.Held(limit.Streams))
		}
	})
}
