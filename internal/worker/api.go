package worker

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/schema"
	"compactd/internal/worker/query"
)

// Bounds of what is done at once over HTTP.
const (
	// maxRequests is how many requests are answered.
	maxRequests = 32
	// maxBodies is how many bodies are read: at most maxBodies times
	// [events.MaxCheckBytes] of memory, each for bodyTimeout at most.
	maxBodies   = 32
	bodyTimeout = 5 * time.Second
)

// slots are places for requests. Who gets none is refused at once.
type slots chan struct{}

func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) release() { <-s }

// api adds the requests of the service over HTTP. Until there is a worker nothing can
// answer them. A request takes its slot when its body is there: payloads that come
// slowly hold places of their own, and keep no other request from its answer.
func (m *Monitor) api(mux *http.ServeMux) {
	answers, bodies := make(slots, maxRequests), make(slots, maxBodies)
	for _, r := range Routes() {
		mux.HandleFunc(r.Method+" "+r.Path, func(w http.ResponseWriter, q *http.Request) {
			on := m.serving(w)
			if on == nil {
				return
			}
			body, err := readBody(w, q, &r, bodies)
			if err == nil && r.awaits(q) { // they have a bound of their own, and hold no slot while they wait
				m.answer(w, q, &r, body)
				return
			}
			if err == nil && !answers.take() {
				err = query.ErrBusy
			}
			if err != nil {
				writeError(w, on.worker.service.Refuse(err))
				return
			}
			defer answers.release()
			m.answer(w, q, &r, body)
		})
		mux.HandleFunc(r.Path, wrongMethod(r.Method))
	}
	m.page(mux, "/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, "application/json", schema.OpenAPI)
	})
	m.page(mux, "/v1/schema/{name}", func(w http.ResponseWriter, q *http.Request) {
		writePage(w, "application/schema+json", func() ([]byte, error) { return schema.Payload(strings.TrimSuffix(q.PathValue("name"), ".json")) })
	})
}

// serving is the worker that answers; nil when there is none, after a refusal.
func (m *Monitor) serving(w http.ResponseWriter) *ledgerEvents {
	on := m.watched.Load()
	if on == nil {
		writeError(w, query.Refusal(query.ErrNotServed))
		return nil
	}
	select {
	case <-on.stopping: // its connections may be closed
		writeError(w, query.Refusal(query.ErrStopping))
		return nil
	default:
		return on
	}
}

// answer answers one request, whose body was read.
func (m *Monitor) answer(w http.ResponseWriter, q *http.Request, r *Route, body []byte) {
	on := m.serving(w)
	if on == nil {
		return
	}
	request, err := r.request(q, body)
	var data []byte
	if err == nil {
		data, err = on.worker.service.Reply(q.Context(), r.Endpoint, request)
	}
	if err != nil {
		writeError(w, on.worker.service.Refuse(err))
		return
	}
	writeData(w, http.StatusOK, "application/json", data)
}

// readBody reads the body of a request that may have one, bounded in bytes and time,
// in one of a few places.
func readBody(w http.ResponseWriter, q *http.Request, r *Route, places slots) ([]byte, error) {
	deadline := http.NewResponseController(w)
	defer func() { _ = deadline.SetReadDeadline(time.Time{}) }() // else it would end a long answer
	if !r.Body || q.Body == http.NoBody {
		return nil, nil
	}
	if !places.take() {
		return nil, query.ErrBusy
	}
	defer places.release()
	if err := deadline.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return nil, fmt.Errorf("bound the body: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, events.MaxCheckBytes))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, events.NewInvalid(events.CodeTooLarge, "", "the body has more bytes than a request may have")
	}
	if err != nil {
		return nil, events.NewInvalid(events.CodeBadJSON, "", fmt.Sprintf("the body ended early, or did not come within %s", bodyTimeout))
	}
	return body, nil
}

// errNoPage and errMethod are refusals that only HTTP has.
var (
	errNoPage = &events.ServiceError{V: events.Version, Code: events.CodeNotFound, Message: "there is no such path", Hint: "GET / says where health, metrics and the API are, GET /v1/openapi.json lists all requests."}
	errMethod = &events.ServiceError{V: events.Version, Code: events.CodeMethodNotAllowed, Message: "the path has another method", Hint: "See the header Allow."}
)

func wrongMethod(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allowed)
		writeError(w, errMethod)
	}
}

// statuses are the HTTP statuses of codes; any other is a request that cannot be
// understood.
var statuses = map[events.Code]int{
	events.CodeUnavailable: http.StatusServiceUnavailable, events.CodeGone: http.StatusGone, events.CodeInternal: http.StatusInternalServerError,
	events.CodeUnauthorized: http.StatusUnauthorized, events.CodeForbidden: http.StatusForbidden,
	events.CodeNotFound: http.StatusNotFound, events.CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	events.CodeUnknownTurn: http.StatusNotFound, events.CodeUnknownGeneration: http.StatusNotFound,
	events.CodeTurnPending: http.StatusGatewayTimeout,
	events.CodeTooLarge:    http.StatusRequestEntityTooLarge, events.CodeFormatChanged: http.StatusConflict,
}

func statusOf(c events.Code) int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusBadRequest
}

func writeError(w http.ResponseWriter, e *events.ServiceError) {
	data, _ := events.Marshal(e) // of strings
	if e.Code == events.CodeUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeData(w, statusOf(e.Code), "application/json", data)
}

func writePage(w http.ResponseWriter, kind string, read func() ([]byte, error)) {
	data, err := read()
	if err != nil {
		writeError(w, errNoPage)
		return
	}
	writeData(w, http.StatusOK, kind, data)
}

func writeData(w http.ResponseWriter, status int, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(data)         // the caller is gone, or reads it
	_, _ = w.Write([]byte{'\n'}) // the same
}
