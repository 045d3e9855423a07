package query

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/schema"
)

// Operation is one request that workers answer: over NATS on compactd.<name>, over HTTP by its
// method and path.
type Operation struct {
	Name string
	// Method, Path and Query are how the request is made over HTTP. What stands in the path is
	// text.
	Method, Path string
	Query        []Param
	Body         bool // the payload is the body, together with what the path contains
	// Responses names the schemas of the answer: it is valid by one of them.
	Responses []string

	answer func(*Service, context.Context, []byte) (any, error)
	slow   bool // reads the log: each answer has a slot
	long   bool // waits for models: such answers have places and a time of their own
	awaits bool // a request may wait for a turn
	syncs  bool // publishes: for agents alone, in places of its own
	// partition returns whose request it is: only the worker that serves the partition
	// can answer. Nil leaves it to any worker. An error leaves it to any, too: the
	// answer reports what is wrong.
	partition func(*Service, []byte) (int, error)
}

// typed answers what a decoder reads.
func typed[Q, A any](decode func([]byte) (*Q, error), answer func(*Service, context.Context, *Q) (A, error)) func(*Service, context.Context, []byte) (any, error) {
	return func(s *Service, ctx context.Context, request []byte) (any, error) {
		in, err := decode(request)
		if err != nil {
			return nil, err
		}
		return answer(s, ctx, in)
	}
}

// Operations lists what may be requested.
func Operations() []Operation {
	const session = "/v1/sessions/{tenant}/{session}"
	page := Param{Name: "page"}
	awaits := []Param{{Name: "turn"}, {Name: "seq"}, {Name: "wait_ms"}}
	return []Operation{
		{
			Name: "attach", Method: "POST", Path: session + "/attach", Body: true, Responses: []string{"attach-response"},
			answer: typed(events.DecodeAttachRequest, (*Service).attach), long: true, partition: (*Service).partitionOf,
		},
		{
			Name: "health", Method: "GET", Path: "/v1/health", Responses: []string{"health-response"},
			answer: func(s *Service, _ context.Context, _ []byte) (any, error) { return s.health(), nil },
		},
		{
			Name: "sessions", Method: "GET", Path: "/v1/sessions", Responses: []string{"sessions-response"},
			Query:  []Param{{Name: "tenant", Text: true}, {Name: "limit"}, {Name: "after", Text: true}},
			answer: typed(events.DecodeSessionsRequest, (*Service).sessions), slow: true, partition: (*Service).partitionAfter,
		},
		{
			Name: "check", Method: "POST", Path: session + "/check", Body: true, Responses: []string{"check-response"},
			answer: typed(events.DecodeCheckRequest, (*Service).check), awaits: true, partition: (*Service).partitionOf,
		},
		{
			Name: "context", Method: "GET", Path: session + "/context", Responses: []string{"context-response"},
			Query:  append([]Param{page, {Name: "generation"}}, awaits...),
			answer: typed(events.DecodeContextRequest, (*Service).context), slow: true, awaits: true, partition: (*Service).partitionOf,
		},
		{
			Name: "files", Method: "GET", Path: session + "/files", Responses: []string{"files-response"},
			Query:  []Param{page},
			answer: typed(events.DecodeFilesRequest, (*Service).files), slow: true, partition: (*Service).partitionOf,
		},
		{
			Name: "history", Method: "GET", Path: session + "/history", Responses: []string{"history-response"},
			Query:  []Param{{Name: "limit"}},
			answer: typed(events.DecodeHistoryRequest, (*Service).compactions), slow: true, partition: (*Service).partitionOf,
		},
		{
			Name: "outcome", Method: "GET", Path: session + "/outcome", Responses: []string{"outcome-response"},
			Query:  []Param{{Name: "seq"}, {Name: "wait_ms"}},
			answer: typed(events.DecodeOutcomeRequest, (*Service).outcome), awaits: true, partition: (*Service).partitionOf,
		},
		{
			Name: "recall", Method: "GET", Path: session + "/recall", Responses: []string{"recall-response", "search-response"},
			Query:  []Param{{Name: "turn"}, {Name: "index"}, page, {Name: "text", Text: true}, {Name: "limit"}, {Name: "before", Place: true}, {Name: "ancestor", Text: true}},
			answer: typed(events.DecodeRecallRequest, (*Service).recall), slow: true, partition: (*Service).partitionOf,
		},
		{
			Name: "stats", Method: "GET", Path: session + "/stats", Responses: []string{"stats-response"},
			Query:  append([]Param{{Name: "provider", Text: true}, {Name: "model", Text: true}, {Name: "max_output_tokens"}}, awaits...),
			answer: typed(events.DecodeStatsRequest, (*Service).stats), awaits: true, partition: (*Service).partitionOf,
		},
		{
			Name: "sync", Method: "POST", Path: session + "/sync", Body: true, Responses: []string{"sync-response"},
			Query:  []Param{{Name: "form", Text: true}},
			answer: typed(events.DecodeSyncRequest, (*Service).sync), syncs: true, partition: (*Service).syncPartition,
		},
	}
}

// syncPartition is the partition of the session that a sync is about.
func (s *Service) syncPartition(request []byte) (int, error) {
	a, err := events.SyncAddress(request)
	return events.PartitionOf(a, s.config.Partitions.Count()), err
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
	if o.partition == nil {
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

// describe is what discovery reports: the ids of the schemas, and where the operation is
// over HTTP.
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

// waitsFor reads what a request waits for; not ok is one that is answered as it stands.
func (o *Operation) waitsFor(request []byte) (events.Await, bool) {
	if !o.awaits {
		return events.Await{}, false
	}
	_, w, err := events.AwaitedBy(request)
	return w, err == nil && w.Waits() // the answer reports what is wrong with it
}
