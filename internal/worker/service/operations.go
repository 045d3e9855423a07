package service

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema"
	"compactd/internal/worker/policies"
)

// Operation is one request that workers answer: over NATS on compactd.<name>, over HTTP by its
// method and path.
type Operation struct {
	Name string
	// Method, Path and Query are the request over HTTP. Parameters in the path are text.
	Method, Path string
	Query        []Param
	Body         bool // the payload is the body, together with what the path contains
	HTTPOnly     bool // over NATS workers alone request it, of each other
	Operators    bool // for operators alone
	// Responses names schemas: the answer is valid by one of them.
	Responses []string

	decode func(*Service, []byte) (*call, error)
	slow   bool // reads the log: each answer has a place
	steps  bool // takes that place itself, after memory: who has a place waits for no memory
	long   bool // waits for models: such answers have a time of their own
	syncs  bool // publishes: for agents alone
	global bool // any worker answers

	audited bool // operators read content, or change what decides
}

// call is a request that was decoded.
type call struct {
	tenant, session string
	partition       int // partition of the session; -1: any worker answers
	wait            events.Await
	answer          func(context.Context) (any, error)
	in              any    // the request that answer works on
	raw             []byte // in as it came, nil for a request of this process
}

// payload is the request for another worker.
func (c *call) payload() ([]byte, error) {
	if c.raw != nil {
		return c.raw, nil
	}
	return codec.Marshal(c.in)
}

// addressed is a request about a session.
type addressed[Q any] interface {
	events.Payload[Q]
	Address() events.Address
}

// read makes an operation of the call for a decoded request.
func read[Q any, P events.Payload[Q]](of func(*Service, *Q) *call) func(*Service, []byte) (*call, error) {
	return func(s *Service, request []byte) (*call, error) {
		in, err := events.Decode[Q, P](request)
		if err != nil {
			return nil, err
		}
		c := of(s, in)
		c.raw = request
		return c, nil
	}
}

// typed makes an operation of the function that answers the decoded request.
func typed[Q, A any, P addressed[Q]](answer func(*Service, context.Context, *Q) (A, error)) func(*Service, []byte) (*call, error) {
	return read[Q, P](func(s *Service, in *Q) *call { return callOf[Q, A, P](s, in, answer) })
}

// byAny makes an operation about policies, which any worker answers.
func byAny[Q, A any, P events.Payload[Q]](answer func(*policies.Policies, context.Context, *Q) (A, error)) func(*Service, []byte) (*call, error) {
	return read[Q, P](func(s *Service, in *Q) *call {
		return &call{tenant: events.AnyTenant, partition: anyWorker, in: in, answer: func(ctx context.Context) (any, error) {
			if s.config.Policies == nil {
				return nil, errNoPolicies
			}
			return answer(s.config.Policies, ctx, in)
		}}
	})
}

var errNoPolicies = events.Refuse(events.CodeNotFound, "the worker follows no policies of tenants", "Request it of a worker that compactd-worker runs.")

func callOf[Q, A any, P addressed[Q]](s *Service, in *Q, answer func(*Service, context.Context, *Q) (A, error)) *call {
	a := P(in).Address()
	c := &call{
		tenant: a.Tenant, session: a.Session, partition: s.config.Partitions.Of(a), in: in,
		answer: func(ctx context.Context) (any, error) { return answer(s, ctx, in) },
	}
	if w, ok := any(in).(interface{ Awaited() events.Await }); ok {
		c.wait = w.Awaited()
	}
	return c
}

// Operations lists all operations.
func Operations() []Operation {
	const session = "/v1/sessions/{tenant}/{session}"
	page := Param{Name: "page"}
	awaits := []Param{{Name: "turn"}, {Name: "seq"}, {Name: "wait_ms"}}
	ranks := []Param{{Name: "sort", Text: true}, {Name: "order", Text: true}, {Name: "text", Text: true}, {Name: "limit"}, {Name: "after", Text: true}, {Name: "partition"}}
	return []Operation{
		{
			Name: "attach", Method: "POST", Path: session + "/attach", Body: true, Responses: []string{"attach-response"},
			decode: typed((*Service).attach), long: true,
		},
		{
			Name: "health", Method: "GET", Path: "/v1/health", Responses: []string{"health-response"},
			decode: (*Service).decodeHealth, global: true,
		},
		{
			Name: "sessions", Method: "GET", Path: "/v1/sessions", Responses: []string{"sessions-response"},
			Query:  append([]Param{{Name: "tenant", Text: true}, {Name: "level", Text: true}}, ranks...),
			decode: read((*Service).callSessions), slow: true, steps: true,
		},
		{
			Name: "fleet", Method: "GET", Path: "/v1/fleet", Responses: []string{"fleet-response"},
			Query: []Param{{Name: "partition"}}, Operators: true,
			decode: read((*Service).callFleet), slow: true, steps: true,
		},
		{
			Name: "tenants", Method: "GET", Path: "/v1/tenants", Responses: []string{"tenants-response"},
			Query: ranks, Operators: true,
			decode: read((*Service).callTenants), slow: true, steps: true,
		},
		{
			Name: "policies", Method: "GET", Path: "/v1/tenants/{tenant}/policies", Responses: []string{"policies-response"},
			Query: []Param{{Name: "hash", Text: true}}, Operators: true,
			decode: byAny((*policies.Policies).Get), slow: true,
		},
		{
			Name: "policy", Method: "POST", Path: "/v1/tenants/{tenant}/policy", Body: true, Responses: []string{"policies-response"},
			Operators: true,
			decode:    byAny((*policies.Policies).Set), slow: true, audited: true,
		},
		{
			Name: "check", Method: "POST", Path: session + "/check", Body: true, Responses: []string{"check-response"},
			decode: typed((*Service).check),
		},
		{
			Name: "context", Method: "GET", Path: session + "/context", Responses: []string{"context-response"},
			Query:  append([]Param{page, {Name: "generation"}}, awaits...),
			decode: typed((*Service).context), slow: true, steps: true, audited: true,
		},
		{
			Name: "files", Method: "GET", Path: session + "/files", Responses: []string{"files-response"},
			Query:  []Param{page},
			decode: typed((*Service).files), slow: true, audited: true,
		},
		{
			Name: "history", Method: "GET", Path: session + "/history", Responses: []string{"history-response"},
			Query:  []Param{{Name: "limit"}},
			decode: typed((*Service).compactions), slow: true, steps: true,
		},
		{
			Name: "outcome", Method: "GET", Path: session + "/outcome", Responses: []string{"outcome-response"},
			Query:  []Param{{Name: "seq"}, {Name: "wait_ms"}},
			decode: typed((*Service).outcome),
		},
		{
			Name: "recall", Method: "GET", Path: session + "/recall", Responses: []string{"recall-response", "search-response"},
			Query:  []Param{{Name: "turn"}, {Name: "index"}, page, {Name: "text", Text: true}, {Name: "limit"}, {Name: "before", Place: true}, {Name: "ancestor", Text: true}},
			decode: typed((*Service).recall), slow: true, steps: true, audited: true,
		},
		{
			Name: "timeline", Method: "GET", Path: session + "/timeline", Responses: []string{"timeline-response"},
			Query: awaits, Operators: true, HTTPOnly: true,
			decode: typed((*Service).timeline),
		},
		{
			Name: "changes", Method: "GET", Path: session + "/changes", Responses: []string{"changes-response"},
			Query: append([]Param{page, {Name: "generation"}}, awaits...), Operators: true, HTTPOnly: true,
			decode: typed((*Service).changes), slow: true, steps: true, audited: true,
		},
		{
			Name: "xray", Method: "GET", Path: session + "/xray", Responses: []string{"xray-response"},
			Query: append([]Param{{Name: "generation"}}, awaits...), Operators: true, HTTPOnly: true,
			decode: typed((*Service).xray), slow: true, steps: true, audited: true,
		},
		{
			Name: "preview", Method: "POST", Path: session + "/preview", Body: true, Operators: true, HTTPOnly: true, Responses: []string{"preview-response"},
			decode: typed((*Service).preview),
		},
		{
			Name: "whatif", Method: "POST", Path: session + "/whatif", Body: true, Operators: true, HTTPOnly: true, Responses: []string{"whatif-response"},
			decode: typed((*Service).whatIf), long: true,
		},
		{
			Name: "stats", Method: "GET", Path: session + "/stats", Responses: []string{"stats-response"},
			Query:  append([]Param{{Name: "provider", Text: true}, {Name: "model", Text: true}, {Name: "max_output_tokens"}}, awaits...),
			decode: typed((*Service).stats),
		},
		{
			Name: "sync", Method: "POST", Path: session + "/sync", Body: true, Responses: []string{"sync-response"},
			Query:  []Param{{Name: "form", Text: true}},
			decode: typed((*Service).sync), syncs: true,
		},
	}
}

// MaxBody bounds the body of a request over HTTP, in bytes.
func (o *Operation) MaxBody() int {
	if o.syncs {
		return events.MaxSyncBytes
	}
	return events.MaxCheckBytes
}

// limit bounds an answer.
func (o *Operation) limit() time.Duration {
	if o.long {
		return LongestAnswer
	}
	return AnswerTimeout
}

// Subject is where the operation is requested over NATS.
func (o *Operation) Subject() string { return events.ServiceName + "." + o.Name }

// Request names the schema of the payload; "" where none is read.
func (o *Operation) Request() string {
	if o.global {
		return ""
	}
	return o.Name + "-request"
}

var pathParams = regexp.MustCompile(`\{(\w+)\}`)

// PathParams names what stands in the path.
func (o *Operation) PathParams() []string {
	var out []string
	for _, m := range pathParams.FindAllStringSubmatch(o.Path, -1) {
		out = append(out, m[1])
	}
	return out
}

// describe is the metadata for discovery: the ids of the schemas, and the method and path over
// HTTP.
func (o *Operation) describe() map[string]string {
	responses := slices.Clone(o.Responses)
	for i, name := range responses {
		responses[i] = schema.ID(name)
	}
	out := map[string]string{"error": schema.ID("error"), "response": strings.Join(responses, " "), "http": o.Method + " " + o.Path}
	if request := o.Request(); request != "" {
		out["request"] = schema.ID(request)
	}
	return out
}
