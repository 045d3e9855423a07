package agents

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/schema"
	"compactd/internal/worker/query"
)

// sessionPath is what the paths about a session begin with.
const sessionPath = "/v1/sessions/{tenant}/{session}"

// handler routes. What is read is answered by the operations of package query, as over NATS.
func (e *Edge) handler() http.Handler {
	mux := http.NewServeMux()
	for _, v := range verbs {
		e.route(mux, http.MethodPost, sessionPath+"/"+v.path, func(w http.ResponseWriter, r *http.Request) error { return e.publish(w, r, v) })
	}
	e.route(mux, http.MethodGet, sessionPath+"/events", e.stream)
	e.gateways(mux)
	mux.Handle(mcpPath+"{tenant}/{session}", e.mcpHandler())
	e.route(mux, http.MethodGet, "/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) error {
		data, err := schema.OpenAPI()
		if err == nil {
			query.WriteData(w, http.StatusOK, "application/json", data)
		}
		return err
	})
	query.ServeHTTP(mux, e.config.Service, e.read)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { query.WriteError(w, errNoPath) })
	return e.metrics.count(e.guard(routed(mux)))
}

// route answers one method at a path, and refuses any other.
func (e *Edge) route(mux *http.ServeMux, method, path string, h func(http.ResponseWriter, *http.Request) error) {
	mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			query.WriteError(w, query.Refusal(err))
		}
	})
	mux.HandleFunc(path, query.WrongMethod(method))
}

// read lets an operation answer about what the token may use, under the id of the session.
func (e *Edge) read(o *query.Operation, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tenant, err := e.permit(o, r)
		if err == nil {
			var done func()
			if done, err = e.tenants.take(tenant, use{reads: 1}); err == nil {
				defer done()
				err = e.bounded(w, r, o, tenant)
			}
		}
		if err != nil {
			query.WriteError(w, query.Refusal(err))
			return
		}
		answer(w, r)
	}
}

// permit returns the tenant that a request is about, and writes into the request what the
// operation is to read.
func (e *Edge) permit(o *query.Operation, r *http.Request) (tenant string, err error) {
	t := tokenOf(r)
	switch {
	case len(o.PathParams()) > 0:
		a, err := session(r)
		r.SetPathValue("session", a.Session)
		return a.Tenant, err
	case o.Request() != "": // of a tenant: its sessions
		values := r.URL.Query()
		if !values.Has("tenant") && t.role == RoleAgent {
			values.Set("tenant", t.tenant)
		}
		for _, tenant := range values["tenant"] {
			if !t.mayUse(tenant) {
				return "", errOtherTenant
			}
		}
		r.URL.RawQuery = values.Encode()
		return values.Get("tenant"), nil
	case t.role != RoleOperator:
		return "", errForOperators
	}
	return anyTenant, nil
}

// bounded reads the body of a request that has one into memory that is counted.
func (e *Edge) bounded(w http.ResponseWriter, r *http.Request, o *query.Operation, tenant string) error {
	if !o.Body || r.Body == http.NoBody {
		return nil
	}
	read := plainBody
	if o.Folds(r) {
		read = query.BodyOfHashes
	}
	body, done, err := e.bodyBy(read, w, r, tenant, o.MaxBody())
	if err != nil {
		return err
	}
	done() // the operation counts it from here on
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// body reads a body of at most a number of bytes, within bodyTimeout. The memory counts until
// done.
func (e *Edge) body(w http.ResponseWriter, r *http.Request, tenant string, most int) (data []byte, done func(), err error) {
	if r.ContentLength > int64(most) {
		return nil, nil, errTooLarge
	}
	return e.bodyBy(plainBody, w, r, tenant, most)
}

func plainBody(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	buffer := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), 64<<10)))
	_, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, int64(most)))
	return buffer.Bytes(), err
}

// bodyBy is body with a way to read it.
func (e *Edge) bodyBy(read query.BodyReader, w http.ResponseWriter, r *http.Request, tenant string, most int) (data []byte, done func(), err error) {
	size := int(min(r.ContentLength, int64(most)))
	if size < 0 { // it comes in chunks
		size = most
	}
	if done, err = e.tenants.take(tenant, use{bytes: size}); err != nil {
		return nil, nil, err
	}
	deadline := http.NewResponseController(w)
	if err = deadline.SetReadDeadline(time.Now().Add(query.BodyTime(r, bodyTimeout))); err == nil {
		data, err = read(w, r, most)
		_ = deadline.SetReadDeadline(time.Time{}) // else it would end a long answer
	}
	if err != nil {
		done()
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, nil, errTooLarge
		}
		if events.CodeOf(err) == events.CodeTooLarge {
			return nil, nil, err
		}
		return nil, nil, events.NewInvalid(events.CodeBadJSON, "", "the body ended early, or did not come within "+bodyTimeout.String())
	}
	return data, done, nil
}

var errForOperators = refusal(events.CodeForbidden, "the request is for operators", "Use a token with the role operator.")

var errTooLarge = events.NewInvalid(events.CodeTooLarge, "", "the body has more bytes than it may have")
