package agents

import (
	"net/http"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/schema"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// sessionPath begins the paths about a session.
const sessionPath = "/v1/sessions/{tenant}/{session}"

// Routes are the requests that the edge answers. The operations of package service answer those that
// only read, as over NATS.
func (e *Edge) Routes() *service.Mux {
	mux := &service.Mux{}
	for _, v := range verbs {
		mux.Route(http.MethodPost, sessionPath+"/"+v.path, func(w http.ResponseWriter, r *http.Request) error { return e.publish(w, r, v) })
	}
	mux.Route(http.MethodGet, sessionPath+"/events", e.stream)
	mux.Route(http.MethodPost, sessionPath+"/token", e.mint)
	e.gateways(mux)
	mux.Handle(mcpPath+"{tenant}/{session}", e.mcpHandler())
	mux.Route(http.MethodGet, "/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) error {
		data, err := schema.AgentsOpenAPI()
		if err == nil {
			service.WriteData(w, http.StatusOK, "application/json", data)
		}
		return err
	})
	service.ServeHTTP(mux, e.config.Service.Serving, e.read)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { service.WriteError(w, errNoPath) })
	return mux
}

// read lets an operation answer about what the token may use, under the id of the session.
func (e *Edge) read(o *service.Operation, answer service.Handler) service.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		tenant, err := e.permit(o, r)
		if err != nil {
			return err
		}
		count(r, tenant)
		return answer(w, r)
	}
}

// count counts a request for a tenant, which an operator's request names.
func count(r *http.Request, tenant string) {
	limit.Of(r.Context()).For(limit.Account{Tenant: tenant, Part: service.TokenOf(r).Part})
}

// permit returns the tenant of a request. It writes the id of the session, or the tenant of the token,
// into the request.
func (e *Edge) permit(o *service.Operation, r *http.Request) (tenant string, err error) {
	t := service.TokenOf(r)
	switch {
	case o.Operators && t.Role != tokens.RoleOperator:
		return "", errForOperators
	case slices.Contains(o.PathParams(), "session"):
		a, err := session(r)
		r.SetPathValue("session", a.Session)
		return a.Tenant, err
	case !o.Operators && o.Request() != "": // of a tenant: its sessions
		values := r.URL.Query()
		if !values.Has("tenant") && t.Role == tokens.RoleAgent {
			values.Set("tenant", t.Tenant)
		}
		for _, tenant := range values["tenant"] {
			if !t.MayUse(tenant) {
				return "", errOtherTenant
			}
		}
		r.URL.RawQuery = values.Encode()
		return values.Get("tenant"), nil
	case t.Role != tokens.RoleOperator:
		return "", errForOperators
	}
	return tokens.AnyTenant, nil
}

var errForOperators = events.Refuse(events.CodeForbidden, "the request is for operators", "Use a token with the role operator.")
