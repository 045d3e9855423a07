package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/trace"
	"compactd/internal/worker/limit"
)

// Bounds of a connection. No client may hold one for long without events.
const (
	headerTimeout  = 5 * time.Second
	writeTimeout   = 30 * time.Second // covers the wait of a request and its answer
	maxHeaderBytes = 16 << 10
	stopTime       = time.Second // of requests under way when a listener stops
)

// ListenAt is the address of a listener: port -1 or 0 picks a free one, a missing host is 127.0.0.1.
func ListenAt(address string) (host, at string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", fmt.Errorf("listen on %q: want host:port, as in 127.0.0.1:8223", address)
	}
	n, err := strconv.Atoi(cmp.Or(port, "0"))
	if err != nil || n < -1 || n > 65535 {
		return "", "", fmt.Errorf("listen on %q: port is not -1 to 65535", address)
	}
	host = cmp.Or(host, "127.0.0.1")
	return host, net.JoinHostPort(host, strconv.Itoa(max(n, 0))), nil
}

// Serve answers on l until ctx ends, and then gives requests under way a second.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	return ServeUntil(ctx, l, stopTime, &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout, // a body has its own
		WriteTimeout:      writeTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1.1: a connection with events is taken over
		ErrorLog:          log.New(io.Discard, "", 0),                               // it would log each client that disconnects
	})
}

// ServeUntil answers on l with a server until ctx ends, and then gives requests under way some time.
func ServeUntil(ctx context.Context, l net.Listener, late time.Duration, s *http.Server) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), late)
	defer cancel()
	if err := s.Shutdown(stop); err != nil {
		_ = s.Close() // a caller repeats a request that is cut off
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// AllowOrigin is the header that lets pages of an origin read an answer.
const AllowOrigin = "Access-Control-Allow-Origin"

// Guard is what a listener lets pass.
type Guard struct {
	Find    func(secret string) *tokens.Entry // the token of a request; nil: none that is in force
	NoToken *events.ServiceError              // refuses a request without one
	// Page refuses or answers requests of browsers, before their token is known. It sets [AllowOrigin] for pages of
	// other origins that may send requests.
	Page func(http.ResponseWriter, *http.Request) (answered bool, refused *events.ServiceError)
	// Refuse refuses requests that a token may not send; nil refuses none.
	Refuse func(http.Header, *http.Request, *tokens.Entry) *events.ServiceError
}

// Before passes on requests with a token, which [TokenOf] returns. It bounds the rate of refusals and of the preflights
// of allowed pages, which have no token.
func (g *Guard) Before(next http.HandlerFunc) http.Handler {
	refusals := limit.NewRefusals()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if len(r.TransferEncoding) > 0 {
			// It may have had a length too, which the server removed, and which a proxy may have believed: RFC 9112, 6.1.
			w.Header().Set("Connection", "close")
		}
		t := g.Find(Bearer(r))
		answered, refused := g.Page(w, r)
		preflight := r.Method == http.MethodOptions && w.Header().Get(AllowOrigin) != ""
		switch {
		case answered:
			return
		case refused != nil || preflight:
		case t == nil:
			refused = g.NoToken
		case g.Refuse != nil:
			refused = g.Refuse(w.Header(), r, t)
		}
		if refused == nil && !preflight {
			ctx := trace.With(r.Context(), events.ReadTrace(r.Header.Values(events.HeaderTrace)))
			next(w, r.WithContext(context.WithValue(ctx, callerKey{}, caller{t, r.RemoteAddr})))
			return
		}
		if refusals.Await(r.Context(), w); refused != nil {
			WriteError(w, refused)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// Handler answers a request, or writes nothing and returns an error.
type Handler func(http.ResponseWriter, *http.Request) error

// ServeHTTP answers a request, with a refusal if the handler returns an error.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		WriteError(w, Refusal(err))
	}
}

// Mux routes requests.
type Mux struct {
	http.ServeMux
	routes []string
}

// Routes lists the routes, each as method and path.
func (m *Mux) Routes() []string { return m.routes }

// Route answers one method at a path, and refuses other methods.
func (m *Mux) Route(method, path string, h Handler) {
	allowed, _, _ := strings.Cut(method, ",") // HEAD is answered as GET
	m.Handle(allowed+" "+path, h)
	m.HandleFunc(path, WrongMethod(method))
	m.routes = append(m.routes, allowed+" "+path)
}
