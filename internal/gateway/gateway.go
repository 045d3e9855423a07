package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"compactd/client"
	"compactd/client/transport"
	"compactd/internal/events"
	"compactd/internal/trace"
	"compactd/internal/worker/limit"
)

// Config has the settings of a [Gateway].
type Config struct {
	// Upstreams are the base URLs of providers, by name, without the path of an API. A request to
	// /to/NAME/… goes to the one of that name; any other to "anthropic" or "openai", by its path.
	Upstreams map[string]*url.URL
	// Worker is required.
	Worker client.Worker
	// Secret is the key of the hashes of principals; the same for all gateways of a fleet.
	Secret []byte
	// Budget is the most that a call waits for a worker. Default 50 ms.
	Budget time.Duration
	// Audit measures the saving and sends calls unchanged.
	Audit bool
	// Principal is the header that names the sender of a request, such as an authenticating proxy's; an upstream
	// gets it only if it is a credential. Without it: the credential, with the user that the request names.
	Principal string
	// Model has settings for all models, such as a window. Zero fields are read from requests.
	Model client.Model
	// Base sends the requests. Default: a transport of its own (direct).
	Base http.RoundTripper
	// OnProblem and OnCompacted are as in [client.FitterConfig]. OnSaved is called with the report of
	// each answered call that was shorter than its history, or would be. They must not block.
	OnProblem   func(client.Note)
	OnCompacted func(session string, s *client.Synced)
	OnSaved     func(transport.Report)
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Gateway is an [http.Handler] that agents call instead of their provider.
type Gateway struct {
	config  Config
	metrics *metrics
	proxy   *httputil.ReverseProxy
}

// remembered is the number of conversations that a gateway remembers.
const remembered = 2048

// New returns a gateway.
func New(c Config) (*Gateway, error) {
	if len(c.Upstreams) == 0 || c.Worker == nil || len(c.Secret) == 0 {
		return nil, errors.New("gateway: upstreams, worker and secret are required")
	}
	for name, u := range c.Upstreams {
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("gateway: upstream %s: %s is no URL with http or https and a host", name, u.Redacted())
		}
	}
	c.Budget = cmp.Or(c.Budget, 50*time.Millisecond)
	if c.OnProblem == nil {
		c.OnProblem = func(client.Note) {}
	}
	if c.OnCompacted == nil {
		c.OnCompacted = func(string, *client.Synced) {}
	}
	if c.OnSaved == nil {
		c.OnSaved = func(transport.Report) {}
	}
	g := &Gateway{config: c, metrics: newMetrics(c.Registerer)}
	g.proxy = &httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		FlushInterval:  -1, // streams
		ModifyResponse: g.report,
		ErrorHandler:   g.failed,
		ErrorLog:       log.New(io.Discard, "", 0), // failed has them
		Transport: &transport.Transport{
			Fitter: client.NewFitter(client.FitterConfig{
				Worker: c.Worker, Wait: c.Budget, Remembered: remembered,
				OnProblem: func(n client.Note) {
					g.metrics.problems.WithLabelValues(string(n.Code)).Inc()
					c.OnProblem(n)
				},
				OnCompacted: func(session string, s *client.Synced) {
					g.metrics.compactions.Inc()
					c.OnCompacted(session, s)
				},
			}),
			SessionOf: g.sessionOf, Config: client.Config{Model: c.Model}, Audit: c.Audit, CountTokens: true,
			Base: ownHeadersOut{cmp.Or(c.Base, http.RoundTripper(direct())), g.ownHeaders()},
		},
	}
	return g, nil
}

// direct returns a transport for many requests to few hosts, which changes no body.
func direct() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: 1024, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
	}
}

// ServeHTTP passes a request on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, at := g.route(r)
	if name == "" {
		names := strings.Join(slices.Sorted(maps.Keys(g.config.Upstreams)), ", ")
		refuse(w, http.StatusNotFound, "no upstream for "+r.URL.Path+": set the base URL to this one with the path of the provider's, or with /to/NAME before it; the names are "+names)
		return
	}
	if r.Header.Get("Upgrade") != "" && strings.HasSuffix(r.URL.Path, "/responses") {
		refuse(w, http.StatusUpgradeRequired, "calls over a WebSocket are not served here: send them as requests") // agents then do
		return
	}
	limit.TimeBody(w, r)
	req := &request{upstream: g.config.Upstreams[name]}
	ctx := trace.With(r.Context(), events.ReadTrace(r.Header.Values(events.HeaderTrace)))
	ctx, end := trace.Start(ctx, "gateway", events.Address{})
	defer end(nil)
	ctx = context.WithValue(ctx, requestKey{}, req)
	r = r.WithContext(transport.WithReport(ctx, &req.report))
	r.URL = at
	if !g.answerCompaction(w, r, &req.report) {
		g.proxy.ServeHTTP(w, r)
	}
}

type requestKey struct{}

// request is a request that passes.
type request struct {
	upstream *url.URL
	report   transport.Report
}

func requestOf(r *http.Request) *request {
	req, _ := r.Context().Value(requestKey{}).(*request)
	return req
}

// route returns the name of the upstream of a request, "" for none, and the URL there without a host.
func (g *Gateway) route(r *http.Request) (name string, at *url.URL) {
	u := *r.URL
	if named, ok := strings.CutPrefix(u.Path, "/to/"); ok {
		name, _, _ = strings.Cut(named, "/")
		u.Path, u.RawPath = strings.TrimPrefix(u.Path, "/to/"+name), strings.TrimPrefix(u.RawPath, "/to/"+name)
	} else {
		name = "openai"
		u.Path, u.RawPath = versioned(u.Path), versioned(u.RawPath)
		if r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(u.Path+"/", "/v1/messages/") { // OpenAI has …/threads/ID/messages
			name = "anthropic"
		}
	}
	if g.config.Upstreams[name] == nil {
		return "", nil
	}
	return name, &u
}

// calls are the paths of calls after the version of an API.
var calls = []string{"/chat/completions", "/responses", "/responses/compact", "/messages", "/messages/count_tokens"}

// versioned is a path with the version of the API once: some agents have it in their base URL, and
// others add it.
func versioned(path string) string {
	if slices.Contains(calls, path) {
		return "/v1" + path
	}
	if rest, ok := strings.CutPrefix(path, "/v1/v1/"); ok {
		return "/v1/" + rest
	}
	return path
}

func (g *Gateway) rewrite(r *httputil.ProxyRequest) {
	upstream := requestOf(r.In).upstream
	r.SetURL(upstream)
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came, also where Go cannot parse it
	if own := upstream.RawQuery; own != "" {
		r.Out.URL.RawQuery = strings.TrimSuffix(own+"&"+r.In.URL.RawQuery, "&")
	}
}

// report adds headers about the result.
func (g *Gateway) report(r *http.Response) error {
	req := requestOf(r.Request)
	g.metrics.count(&req.report, r.StatusCode)
	for name := range r.Header { // an upstream may be a gateway, too
		if strings.HasPrefix(name, "X-Compactd-") {
			r.Header.Del(name)
		}
	}
	if req.report.Session == "" {
		return nil
	}
	g.describe(r.Header, &req.report)
	if req.report.Saved > 0 && isCall(&req.report, r.StatusCode) {
		g.config.OnSaved(req.report)
	}
	return nil
}

// describe adds the result to the header of an answer.
func (g *Gateway) describe(h http.Header, report *transport.Report) {
	if !report.Alone {
		h.Set("X-Compactd-Generation", strconv.FormatInt(report.Generation, 10))
	}
	h.Set("X-Compactd-Changed", strconv.FormatBool(report.Changed && !g.config.Audit))
	h.Set("X-Compactd-Saved", strconv.FormatInt(report.Saved, 10))
}

// failed answers for an upstream that did not.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	req := requestOf(r)
	if errors.Is(err, limit.ErrSlow) {
		refuse(w, http.StatusRequestTimeout, "the request came too slowly")
		return
	}
	if r.Context().Err() == nil { // else the agent has gone
		g.metrics.count(&req.report, http.StatusBadGateway)
		g.config.OnProblem(client.Note{Code: "upstream", Message: req.upstream.Host + " does not answer: " + err.Error(), Hint: "Check --upstream, and the network."})
	}
	refuse(w, http.StatusBadGateway, req.upstream.Host+" does not answer: "+err.Error())
}

// refuse answers as providers do.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "code": "compactd_gateway", "message": message}})
}

// ownHeaders are for a gateway alone. A credential may name the sender, and is for the upstream too.
func (g *Gateway) ownHeaders() []string {
	principal := http.CanonicalHeaderKey(g.config.Principal)
	if slices.Contains(credentials, principal) {
		return []string{sessionHeader}
	}
	return []string{sessionHeader, principal}
}

// ownHeadersOut sends requests without some headers.
type ownHeadersOut struct {
	base http.RoundTripper
	own  []string
}

func (o ownHeadersOut) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, name := range o.own {
		r.Header.Del(name)
	}
	return o.base.RoundTrip(r)
}
