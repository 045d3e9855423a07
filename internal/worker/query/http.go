package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"compactd/internal/events"
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

// ServeHTTP adds all operations to mux. current is the service that answers, or why there is none
// now: until there is a worker nothing can answer. wrap is put around each operation; nil is
// nothing.
func ServeHTTP(mux *http.ServeMux, current func() (*Service, error), wrap func(*Operation, http.HandlerFunc) http.HandlerFunc) {
	h := &adapter{current: current, answers: make(places, maxRequests), reads: make(places, maxBodies)}
	for _, o := range Operations() {
		if o.syncs && wrap == nil { // for agents, who have tokens
			continue
		}
		answer := func(w http.ResponseWriter, q *http.Request) {
			if err := h.answer(w, q, &o); err != nil {
				WriteError(w, Refusal(err))
			}
		}
		if wrap != nil {
			answer = wrap(&o, answer)
		}
		mux.HandleFunc(o.Method+" "+o.Path, answer)
		mux.HandleFunc(o.Path, WrongMethod(o.Method))
	}
}

// adapter answers requests over HTTP.
type adapter struct {
	current func() (*Service, error)
	answers places
	reads   places // of bodies
}

// answer writes an answer; after an error nothing is written. A request takes its place when its
// body is there: bodies that come slowly hold places of their own, and keep no other request
// from its answer.
func (h *adapter) answer(w http.ResponseWriter, q *http.Request, o *Operation) error {
	if _, err := h.current(); err != nil {
		return err
	}
	body, err := h.body(w, q, o)
	if err != nil {
		return err
	}
	request, err := o.payload(q, body)
	if err != nil {
		return err
	}
	if _, waits := o.waitsFor(request); !waits && !o.long { // those that do have a bound of their own
		if !h.answers.take() {
			return ErrBusy
		}
		defer h.answers.release()
	}
	s, err := h.current() // it may have begun to stop
	if err != nil {
		return err
	}
	if o.long {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(o.limit() + bodyTimeout)) // else that of the server holds
	}
	data, err := s.Answer(q.Context(), o, request)
	if err != nil {
		return err
	}
	WriteData(w, http.StatusOK, "application/json", data)
	return nil
}

// body reads the body of a request that may have one, bounded in bytes and time,
// in one of a few places.
func (h *adapter) body(w http.ResponseWriter, q *http.Request, o *Operation) ([]byte, error) {
	deadline := http.NewResponseController(w)
	defer func() { _ = deadline.SetReadDeadline(time.Time{}) }() // else it would end a long answer
	if !o.Body || q.Body == http.NoBody {
		return nil, nil
	}
	if !h.reads.take() {
		return nil, ErrBusy
	}
	defer h.reads.release()
	if err := deadline.SetReadDeadline(time.Now().Add(BodyTime(q, bodyTimeout))); err != nil {
		return nil, fmt.Errorf("bound the body: %w", err)
	}
	var body []byte
	var err error
	if o.Folds(q) {
		body, err = BodyOfHashes(w, q, o.MaxBody())
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, q.Body, int64(o.MaxBody())))
	}
	if events.CodeOf(err) == events.CodeTooLarge {
		return nil, err
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, events.NewInvalid(events.CodeTooLarge, "", "the body has more bytes than a request may have")
	}
	if err != nil {
		return nil, events.NewInvalid(events.CodeBadJSON, "", fmt.Sprintf("the body ended early, or did not come within %s", bodyTimeout))
	}
	return body, nil
}

// BodyReader reads a body of at most a number of bytes.
type BodyReader func(w http.ResponseWriter, r *http.Request, most int) ([]byte, error)

// foldMargin is what a request has beside its body: the fields of the path.
const foldMargin = 4 << 10

// Folds reports whether a body may be larger than [Operation.MaxBody], and is read by
// [BodyOfHashes] then.
func (o *Operation) Folds(r *http.Request) bool {
	return o.syncs && (r.ContentLength < 0 || r.ContentLength > int64(o.MaxBody()))
}

// BodyOfHashes reads a body whose media count with their references where they would be too large:
// see [events.ReadSync].
func BodyOfHashes(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	return events.ReadSync(http.MaxBytesReader(w, r.Body, events.MaxSyncBody), most-foldMargin)
}

// BodyTime is the time that a body has: each [events.MaxSyncBytes] of it has that of a body.
func BodyTime(r *http.Request, one time.Duration) time.Duration {
	return one * time.Duration(1+min(max(r.ContentLength, 0), events.MaxSyncBody)/events.MaxSyncBytes)
}

// Param is a field of a request that is in the query of its address.
type Param struct {
	Name string
	// Text is taken as it is; anything else is a number where it looks like one.
	Text bool
	// Place is turn.index, for an object with these two.
	Place bool
}

// payload is what the request would be over NATS. What is wrong with it
// the decoder of the payload reports: a field that comes twice is there twice.
func (o *Operation) payload(q *http.Request, body []byte) ([]byte, error) {
	var fields []string
	add := func(name string, value []byte) {
		fields = append(fields, string(quoted(name))+":"+string(value))
	}
	for _, name := range o.PathParams() {
		add(name, quoted(q.PathValue(name)))
	}
	query := q.URL.Query()
	for _, p := range o.Query {
		for _, value := range query[p.Name] {
			add(p.Name, p.value(value))
		}
	}
	members, err := membersOf(body)
	if err != nil {
		return nil, err
	}
	if members != "" {
		fields = append(fields, members)
	}
	return []byte("{" + strings.Join(fields, ",") + "}"), nil
}

// membersOf is what is within the braces of an object; nothing of an empty body.
func membersOf(body []byte) (string, error) {
	text := strings.TrimSpace(string(body))
	if text == "" {
		return "", nil
	}
	if !json.Valid(body) || text[0] != '{' {
		_, _, err := events.AwaitedBy(body)
		if text, ok := strings.CutPrefix(fmt.Sprint(err), "the payload is an array"); ok {
			return "", events.NewInvalid(events.CodeBadJSON, "", "the body is an array"+text)
		}
		return "", events.NewInvalid(events.CodeBadJSON, "", "the body is not one JSON object")
	}
	return strings.TrimSpace(text[1 : len(text)-1]), nil
}

var (
	number    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	turnIndex = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)
)

// value is a parameter as JSON. What is no number stays a text, and is refused as
// one.
func (p *Param) value(s string) []byte {
	switch at := turnIndex.FindStringSubmatch(s); {
	case p.Place && at != nil:
		return []byte(`{"turn":` + at[1] + `,"index":` + at[2] + `}`)
	case !p.Text && number.MatchString(s):
		return []byte(s)
	}
	return quoted(s)
}

func quoted(s string) []byte {
	data, _ := events.Marshal(strings.ToValidUTF8(s, "\uFFFD")) // of a valid string
	return data
}

// Bearer is the token of a request, "" where there is none: the only place that it is
// taken from is one header Authorization with the scheme Bearer.
func Bearer(r *http.Request) string {
	all := r.Header.Values("Authorization")
	if len(all) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(all[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// WrongMethod refuses the other methods of a path.
func WrongMethod(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allowed)
		WriteError(w, &events.ServiceError{V: events.Version, Code: events.CodeMethodNotAllowed, Message: "the path has another method", Hint: "See the header Allow."})
	}
}

// statuses are the HTTP statuses of codes; any other is a request that cannot be
// understood.
var statuses = map[events.Code]int{
	events.CodeUnavailable: http.StatusServiceUnavailable, events.CodeGone: http.StatusGone, events.CodeInternal: http.StatusInternalServerError,
	events.CodeUnauthorized: http.StatusUnauthorized, events.CodeForbidden: http.StatusForbidden,
	events.CodeNotFound: http.StatusNotFound, events.CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	events.CodeUnknownTurn: http.StatusNotFound, events.CodeUnknownGeneration: http.StatusNotFound,
	events.CodeTurnPending: http.StatusGatewayTimeout, events.CodeRateLimited: http.StatusTooManyRequests, events.CodeDuplicateID: http.StatusConflict,
	events.CodeOtherHistory: http.StatusConflict, events.CodeDiverged: http.StatusConflict, events.CodeEditedView: http.StatusConflict,
	events.CodeStaleBase: http.StatusConflict, events.CodeTooManyMessages: http.StatusRequestEntityTooLarge,
	events.CodeTooLarge: http.StatusRequestEntityTooLarge, events.CodeFormatChanged: http.StatusConflict,
}

// WriteError writes a refusal, with the status of its code.
func WriteError(w http.ResponseWriter, e *events.ServiceError) {
	data, _ := events.Marshal(e) // of strings
	if e.Code == events.CodeUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	status, ok := statuses[e.Code]
	if !ok {
		status = http.StatusBadRequest
	}
	WriteData(w, status, "application/json", data)
}

// WriteData writes an answer of a content type.
func WriteData(w http.ResponseWriter, status int, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(data)         // the caller is gone, or reads it
	_, _ = w.Write([]byte{'\n'}) // the same
}
