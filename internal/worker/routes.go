package worker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/schema"
)

// Param is a field of a request that stands in the query.
type Param struct {
	Name string
	// Text is taken as it stands; anything else is a number where it looks like one.
	Text bool
	// Place is turn.index, for an object with these two.
	Place bool
}

// Route is a request over HTTP: another way to an endpoint of the service.
type Route struct {
	Method, Path string
	Endpoint     string  // name of the endpoint
	Query        []Param // those of the path are all texts
	Body         bool    // the payload is the body, together with what the path contains
}

// Routes lists the requests over HTTP, beside the pages that describe them.
func Routes() []Route {
	const session = "/v1/sessions/{tenant}/{session}"
	page := Param{Name: "page"}
	awaits := []Param{{Name: "turn"}, {Name: "seq"}, {Name: "wait_ms"}}
	return []Route{
		{"GET", "/v1/health", "health", nil, false},
		{"GET", "/v1/sessions", "sessions", []Param{{Name: "tenant", Text: true}, {Name: "limit"}, {Name: "after", Text: true}}, false},
		{"POST", session + "/check", "check", nil, true},
		{"GET", session + "/context", "context", append([]Param{page, {Name: "generation"}}, awaits...), false},
		{"GET", session + "/files", "files", []Param{page}, false},
		{"GET", session + "/history", "history", []Param{{Name: "limit"}}, false},
		{"GET", session + "/recall", "recall", []Param{
			{Name: "turn"}, {Name: "index"}, page, {Name: "text", Text: true}, {Name: "limit"}, {Name: "before", Place: true},
		}, false},
		{"GET", session + "/stats", "stats", append([]Param{{Name: "provider", Text: true}, {Name: "model", Text: true}, {Name: "max_output_tokens"}}, awaits...), false},
	}
}

// awaits reports whether a request waits for a turn by its query.
func (r *Route) awaits(q *http.Request) bool {
	waits := slices.ContainsFunc(r.Query, func(p Param) bool { return p.Name == "wait_ms" })
	return waits && (q.URL.Query().Has("turn") || q.URL.Query().Has("seq"))
}

// Payloads names the schemas of what an endpoint receives and answers: one of the
// answers; "" where nothing is received.
func Payloads(endpoint string) (request string, responses []string) {
	responses = []string{endpoint + "-response"}
	switch endpoint {
	case "health":
		return "", responses
	case "recall":
		responses = append(responses, "search-response")
	}
	return endpoint + "-request", responses
}

// described is what discovery reports of an endpoint: the ids of its schemas, and where
// it is over HTTP.
func described(endpoint string) map[string]string {
	request, responses := Payloads(endpoint)
	out := map[string]string{"error": schema.ID("error")}
	if request != "" {
		out["request"] = schema.ID(request)
	}
	for i, name := range responses {
		responses[i] = schema.ID(name)
	}
	out["response"] = strings.Join(responses, " ")
	for _, r := range Routes() {
		if r.Endpoint == endpoint {
			out["http"] = r.Method + " " + r.Path
		}
	}
	return out
}

var pathParams = regexp.MustCompile(`\{(\w+)\}`)

// PathParams names what stands in the path of a route.
func (r *Route) PathParams() []string {
	var out []string
	for _, m := range pathParams.FindAllStringSubmatch(r.Path, -1) {
		out = append(out, m[1])
	}
	return out
}

// request is the payload that a request over HTTP stands for. What is wrong with it
// the decoder of the payload reports: a field that comes twice is there twice.
func (r *Route) request(q *http.Request, body []byte) ([]byte, error) {
	var fields []string
	add := func(name string, value []byte) {
		fields = append(fields, string(quoted(name))+":"+string(value))
	}
	for _, name := range r.PathParams() {
		add(name, quoted(q.PathValue(name)))
	}
	query := q.URL.Query()
	for _, p := range r.Query {
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

// membersOf is what stands within the braces of an object; nothing of an empty body.
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
