package agents

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/models"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// gateways adds the requests of gateways before and after a call of a model: see package compress.
func (e *Edge) gateways(mux *service.Mux) {
	mux.Route(http.MethodPost, "/v1/compress", e.compress)
	mux.Route(http.MethodPost, "/v1/usage", e.usage)
	mux.Route(http.MethodGet, "/v1/retrieve/{hash}", e.retrieve)
}

// litellm begins the User-Agent of LiteLLM. Its guardrail has a tool that takes hashes, but requests
// do not announce it.
const litellm = "litellm/"

// compress answers with the history to send.
func (e *Edge) compress(w http.ResponseWriter, r *http.Request) error {
	tenant, err := tenantOf(r)
	if err != nil {
		return err
	}
	count(r, tenant)
	body, err := readComputing(w, r, events.MaxSyncBytes)
	if err != nil {
		return err
	}
	in, err := events.Decode[events.CompressRequest](body)
	if err != nil {
		return err
	}
	if name, err := sessionHeader(r); err != nil {
		return err
	} else if in.Config.SessionID == "" {
		in.Config.SessionID = name
	}
	if in.Config.Mode == "" && strings.HasPrefix(strings.ToLower(r.UserAgent()), litellm) {
		in.Config.Mode = events.ModeRetrieve
	}
	in.Fallback = fallbackOf(r, in.Model)
	return service.Write(r.Context(), w, http.StatusOK, e.compressor.Compress(r.Context(), tenant, in))
}

// fallbackOf returns the dialect for messages that do not reveal theirs, "" for the default. agentgateway
// sends messages of the provider, and may forward its headers.
func fallbackOf(r *http.Request, model string) events.Format {
	agentgateway := r.Header.Get("X-Agw-Compression-Version") != ""
	if r.Header.Get("Anthropic-Version") != "" || agentgateway && models.Maker(model) == "anthropic" {
		return events.Anthropic
	}
	return ""
}

// usage stores a provider's count until the next request of the session.
func (e *Edge) usage(w http.ResponseWriter, r *http.Request) error {
	tenant, err := tenantOf(r)
	if err != nil {
		return err
	}
	count(r, tenant)
	body, err := service.ReadBody(w, r, limit.Body{Most: events.MaxRequestBytes})
	if err != nil {
		return err
	}
	in, err := events.Decode[events.UsageRequest](body)
	if err != nil {
		return err
	}
	if in.Session == "" {
		if in.Session, err = sessionHeader(r); err != nil {
			return err
		}
	}
	a := events.Address{Tenant: tenant}
	if a.Session, err = events.SessionID(in.Session); err != nil {
		return err
	}
	if err := e.compressor.SaveUsage(r.Context(), a, in); err != nil {
		e.config.OnError(err)
		return service.ErrBusy
	}
	return service.Write(r.Context(), w, http.StatusOK, &events.UsageResponse{V: events.Version, Session: in.Session, View: in.View})
}

// retrieve answers with the text behind a placeholder.
func (e *Edge) retrieve(w http.ResponseWriter, r *http.Request) error {
	t := service.TokenOf(r)
	count(r, t.Tenant)
	ctx, cancel := context.WithTimeoutCause(r.Context(), service.AnswerTimeout, service.ErrBusy)
	defer cancel()
	out, a, err := e.compressor.Retrieve(ctx, t.MayUse, r.PathValue("hash"))
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if err := e.record(r, "retrieve", a); err != nil {
		return err
	}
	return service.Write(r.Context(), w, http.StatusOK, out)
}

// tenantOf returns the tenant of the token, for a request without a tenant.
func tenantOf(r *http.Request) (string, error) {
	t := service.TokenOf(r)
	if t.Role != tokens.RoleAgent {
		return "", errNoTenant
	}
	return t.Tenant, nil
}

var errNoTenant = events.Refuse(events.CodeForbidden, "the token is of no tenant", "Use a token of the tenant, with the role agent.")

// sessionHeader returns the name of the session in the header, or "".
func sessionHeader(r *http.Request) (string, error) {
	names := r.Header.Values(events.SessionHeader)
	if len(names) > 1 {
		return "", events.NewInvalid(events.CodeBadID, "", events.SessionHeader+" is there more than once")
	}
	if len(names) == 0 {
		return "", nil
	}
	return names[0], nil
}
