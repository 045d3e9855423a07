package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/trace"
)

// HTTP sends syncs to the listener for agents of a worker, without NATS. It is safe for concurrent
// use.
type HTTP struct {
	// URL of the listener, such as http://127.0.0.1:8224.
	URL string
	// Token of the role agent.
	Token string
	// Tenant of all sessions. Default "default".
	Tenant string
	// Client sends the requests. By default requests to an http:// URL use no proxy of the environment, which would
	// get the token and the history unencrypted.
	Client *http.Client
}

// pastProxies is the default client of workers.
var pastProxies = &http.Client{Transport: &http.Transport{
	Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme != "https" {
			return nil, nil //nolint:nilnil // nil means: none
		}
		return http.ProxyFromEnvironment(r)
	},
	DialContext:       (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
	ForceAttemptHTTP2: true, DisableCompression: true,
	MaxIdleConnsPerHost: 1024, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
}}

// Sync is [Client.Sync] over HTTP: one request, and a second one if the worker needs the whole history. The
// error without an answer is an [*Error] with [CodeUnavailable].
func (h *HTTP) Sync(ctx context.Context, session string, in Sync) (*Synced, error) {
	s := syncer{most: events.MaxSyncBytes, send: h.post}
	return s.sync(ctx, session, in)
}

// Compact has a session compacted now, and returns when that is done: within eight seconds. A
// compaction that is not decided by then is an [*Error] with [CodeTurnPending], and goes on.
func (h *HTTP) Compact(ctx context.Context, session string) error {
	data, err := h.send(ctx, session, "compact?wait_ms=8000", []byte("{}"))
	if err != nil {
		return err
	}
	var out events.EventResponse
	if codec.Unmarshal(data, &out) != nil || out.Seq == 0 {
		return h.unavailable("the answer is not from a worker")
	}
	if !out.Decided || !out.Accepted {
		return newError(Code(out.Code), out.Message, out.Hint)
	}
	return nil
}

func (h *HTTP) post(ctx context.Context, session string, in *wireSync, out *events.SyncResponse) error {
	body, err := codec.Marshal(in)
	if err != nil {
		return err
	}
	data, err := h.send(ctx, session, "sync", body)
	if err != nil {
		return err
	}
	if codec.Unmarshal(data, out) != nil || out.Need == "" && out.Parts == nil && len(in.Messages) > 0 {
		return h.unavailable("the answer is not from a worker")
	}
	return nil
}

// send makes a request about a session, and returns its answer.
func (h *HTTP) send(ctx context.Context, session, verb string, body []byte) ([]byte, error) {
	tenant := cmp.Or(h.Tenant, events.DefaultTenant)
	at := strings.TrimSuffix(h.URL, "/") + "/v1/sessions/" + tenant + "/" + segment(session) + "/" + verb
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	r.Header.Set("Authorization", "Bearer "+h.Token)
	r.Header.Set("Content-Type", "application/json")
	if t := trace.Of(ctx); t != "" {
		r.Header.Set(events.HeaderTrace, string(t))
	}
	answer, err := cmp.Or(h.Client, pastProxies).Do(r)
	if err != nil {
		return nil, h.unavailable(err.Error())
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(answer.Body, events.MaxSyncBytes))
	if err != nil {
		return nil, h.unavailable(err.Error())
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusAccepted {
		return nil, h.refused(answer.StatusCode, data)
	}
	return data, nil
}

// segment writes a name as one part of a path. Servers and proxies remove parts of dots alone.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// refused is the error of an answer.
func (h *HTTP) refused(status int, data []byte) error {
	e := &events.ServiceError{}
	if codec.Unmarshal(data, e) == nil && e.Code != "" {
		return fmt.Errorf("sync: %w", typed(e))
	}
	if status == http.StatusUnauthorized {
		return newError(CodeUnauthorized, "the token is missing or wrong", "Check the token, and its tenant in the file of tokens.")
	}
	return h.unavailable(http.StatusText(status))
}

func (h *HTTP) unavailable(message string) error {
	return newError(CodeUnavailable, "no worker answers at "+h.URL+": "+message, "Start one with: worker --agents HOST:PORT --agents-tokens FILE")
}
