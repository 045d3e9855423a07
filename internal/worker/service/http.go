package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
)

// ServeHTTP adds all operations to mux. current returns the service, or an error before its start.
// wrap wraps each operation, and begins the [limit.Operation] of a request; nil is for operators.
func ServeHTTP(mux *Mux, current func() (*Service, error), wrap func(*Operation, Handler) Handler) {
	for _, o := range Operations() {
		if o.syncs && wrap == nil { // for agents, who have tokens
			continue
		}
		answer := func(w http.ResponseWriter, r *http.Request) error { return answerHTTP(w, r, current, &o) }
		if wrap == nil {
			answer = ForOperators(current, answer)
		} else {
			answer = wrap(&o, answer)
		}
		mux.Route(o.Method, o.Path, answer)
	}
}

// ForOperators begins the operation of a request of an operator, without the token of a tenant. The
// path may have the name of a session in place of the id.
func ForOperators(current func() (*Service, error), answer Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		s, err := current()
		if err != nil {
			return err
		}
		if name := r.PathValue("session"); name != "" {
			id, err := events.SessionOf(name)
			if err != nil {
				return err
			}
			r.SetPathValue("session", id)
		}
		op := s.limiter.Begin(limit.Account{Tenant: "*"})
		defer op.End()
		return answer(w, r.WithContext(op.With(r.Context())))
	}
}

// answerHTTP writes an answer; after an error nothing is written.
func answerHTTP(w http.ResponseWriter, r *http.Request, current func() (*Service, error), o *Operation) error {
	request, err := o.request(w, r)
	if err != nil {
		return err
	}
	s, err := current() // it may have begun to stop
	if err != nil {
		return err
	}
	if o.long {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(o.limit() + AnswerTimeout)) // else that of the server holds
	}
	data, err := s.answer(r.Context(), o, request)
	if err != nil {
		return s.refuse(err)
	}
	WriteData(w, http.StatusOK, "application/json", data)
	return nil
}

// ReadBody reads the body of a request into memory that counts for its [limit.Operation].
func ReadBody(w http.ResponseWriter, r *http.Request, b limit.Body) ([]byte, error) {
	switch encoding := r.Header.Get("Content-Encoding"); {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return nil, errEncoded
	case r.ContentLength > int64(b.Most) && b.Fold == nil:
		return nil, errTooLarge
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), AnswerTimeout, ErrBusy)
	defer cancel()
	data, err := limit.Of(ctx).ReadBody(ctx, w, r, b)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, errTooLarge
	}
	switch {
	case err == nil, events.CodeOf(err) == events.CodeTooLarge, errors.Is(err, ErrBusy):
		return data, err
	case errors.Is(err, limit.ErrSlow):
		return nil, errSlow
	}
	return nil, events.NewInvalid(events.CodeBadJSON, "", "the body ended early")
}

var (
	errTooLarge = events.NewInvalid(events.CodeTooLarge, "", "the body has more bytes than it may have")
	errSlow     = events.Refuse(events.CodeSlowBody, "the body came too slowly", "Send it within 10 s, and a second more for each 32 KiB.")
	errEncoded  = events.Refuse(events.CodeEncodedBody, "the body has a Content-Encoding", "Send the JSON as it is.")
)

// foldMargin is room for the fields of the path beside the body.
const foldMargin = 4 << 10

// request is the payload that the request would have over NATS. The fields of the address stand in
// memory before the body, so that the body is not copied. The decoder reports errors, such as a
// field in both.
func (o *Operation) request(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	fields := o.fields(r)
	if !o.Body || r.Body == http.NoBody {
		return append(fields, '}'), nil
	}
	b := limit.Body{Most: o.MaxBody(), Prefix: fields}
	if o.syncs { // its media count with their references where they would be too large
		b.MostSent = events.MaxSyncBody
		b.Fold = func(in io.Reader, most int) ([]byte, error) { return events.ReadSync(in, most-foldMargin) }
	}
	data, err := ReadBody(w, r, b)
	if err != nil {
		return nil, err
	}
	return joined(data, len(fields))
}

// fields has the fields of the path and the query, as an object that is not closed.
func (o *Operation) fields(r *http.Request) []byte {
	out := []byte{'{'}
	add := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(name)...), ':'), value...)
	}
	for _, name := range o.PathParams() {
		add(name, quoted(r.PathValue(name)))
	}
	query := r.URL.Query()
	for _, p := range o.Query {
		for _, value := range query[p.Name] {
			add(p.Name, p.value(value))
		}
	}
	return out
}

// joined makes one object of the fields and of the object behind them, which begins at at.
func joined(data []byte, at int) ([]byte, error) {
	body := bytes.TrimLeft(data[at:], jsonSpace)
	switch {
	case len(body) == 0:
		return append(data, '}'), nil
	case body[0] != '{':
		_, err := events.RequestTenant(body)
		if text, ok := strings.CutPrefix(fmt.Sprint(err), "the payload is an array"); ok {
			return nil, events.NewInvalid(events.CodeBadJSON, "", "the body is an array"+text)
		}
		return nil, events.NewInvalid(events.CodeBadJSON, "", "the body is not one JSON object")
	}
	if rest := bytes.TrimLeft(body[1:], jsonSpace); at > 1 && (len(rest) == 0 || rest[0] != '}') {
		body[0] = ','
	} else {
		body[0] = ' '
	}
	return data, nil
}

const jsonSpace = " \t\r\n"

// Param is a field in the query of a URL.
type Param struct {
	Name string
	// Text is taken as it is; other values are numbers if they have the form of one.
	Text bool
	// Place is turn.index, for an object with these two.
	Place bool
}

var (
	number    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	turnIndex = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)
)

// value is a parameter as JSON. A text in the place of a number stays a text, and the decoder
// refuses it.
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
	data, _ := codec.Marshal(strings.ToValidUTF8(s, "\uFFFD")) // cannot fail for a valid string
	return data
}

// Bearer is the token of a request, "" for none. It is read from a single header Authorization with
// the scheme Bearer, and from nowhere else.
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
		WriteError(w, events.Refuse(events.CodeMethodNotAllowed, "the path does not allow this method", "Use the method in the header Allow."))
	}
}

// statuses are the HTTP statuses of codes; any other code has 400.
var statuses = map[events.Code]int{
	events.CodeUnavailable: http.StatusServiceUnavailable, events.CodeGone: http.StatusGone, events.CodeInternal: http.StatusInternalServerError,
	events.CodeStorageLimit: http.StatusInsufficientStorage,
	events.CodeUnauthorized: http.StatusUnauthorized, events.CodeForbidden: http.StatusForbidden,
	events.CodeNotFound: http.StatusNotFound, events.CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	events.CodeUnknownTurn: http.StatusNotFound, events.CodeUnknownGeneration: http.StatusNotFound,
	events.CodeTurnPending: http.StatusGatewayTimeout, events.CodeRateLimited: http.StatusTooManyRequests, events.CodeDuplicateID: http.StatusConflict,
	events.CodeOtherHistory: http.StatusConflict, events.CodeDiverged: http.StatusConflict, events.CodeEditedView: http.StatusConflict,
	events.CodeStaleBase: http.StatusConflict, events.CodeTooManyMessages: http.StatusRequestEntityTooLarge,
	events.CodeSlowBody: http.StatusRequestTimeout, events.CodeEncodedBody: http.StatusUnsupportedMediaType,
	events.CodeTooLarge: http.StatusRequestEntityTooLarge, events.CodeFormatChanged: http.StatusConflict,
}

// WriteError writes a refusal, with the status of its code.
func WriteError(w http.ResponseWriter, e *events.ServiceError) {
	data, _ := codec.Marshal(e) // of strings
	switch e.Code {
	case events.CodeUnavailable:
		w.Header().Set("Retry-After", "1")
	case events.CodeUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	status, ok := statuses[e.Code]
	if !ok {
		status = http.StatusBadRequest
	}
	WriteData(w, status, "application/json", data)
}

// Write writes an answer of this process as JSON.
func Write(ctx context.Context, w http.ResponseWriter, status int, v any) error {
	data, err := codec.Marshal(v)
	limit.Of(ctx).Rest() // a slow reader may follow
	if err == nil {
		WriteData(w, status, "application/json", data)
	}
	return err
}

// WriteData writes an answer of a content type.
func WriteData(w http.ResponseWriter, status int, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(data)         // the caller is gone, or reads it
	_, _ = w.Write([]byte{'\n'}) // the same
}
