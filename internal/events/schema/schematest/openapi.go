package schematest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events"
)

// Operation is one request over HTTP.
type Operation struct {
	Method, Path string
	Name         string
	Request      string            // name of its payload, "" for none
	Responses    []string          // of the payloads it is answered with: one of them
	InPath       []string          // fields of Request in the path
	InQuery      map[string]string // fields of Request in the query, with the pattern of one that is no plain value
	Body         bool              // Request is the body, without the fields in the path
	Refusals     []int             // statuses of refusals
}

// Listener is one address of a worker, and what it answers there.
type Listener struct {
	URL, Title string
	Operations []Operation
	Verbs      map[string]events.Kind // events that are published, by their path behind the session
	Agents     bool                   // it is for agents, who have tokens of their own
}

// verbSummaries describe the events that are published over HTTP.
var verbSummaries = map[string]string{
	"turns":    "Publish a turn: whether it was taken.",
	"overflow": "Report that a provider refused a call as too long: the history that fits.",
	"compact":  "Compact the history now: the history after it.",
	"rewind":   "Return to an earlier generation: the history after it.",
	"end":      "End the session.",
	"forget":   "Erase the session: what was erased. For operators.",
}

// gatewayPaths are what gateways call before and after a model.
var gatewayPaths = []struct {
	name, method, path, summary string
	hash                        bool
	refusals                    []int
}{
	{"compress", "post", "/v1/compress", "Reduces the history that a gateway is about to send. Returns it unchanged where nothing can be done.", false, []int{400, 401, 403, 405, 413, 429, 500, 503}},
	{"usage", "post", "/v1/usage", "Takes the provider's count for a call with that history.", false, []int{400, 401, 403, 405, 413, 429, 500, 503}},
	{"retrieve", "get", "/v1/retrieve/{hash}", "The text that a placeholder stands for.", true, []int{400, 401, 403, 404, 405, 429, 500, 503}},
}

const session = "/v1/sessions/{tenant}/{session}/"

func param(in, name string, required bool, words string, schema object) object {
	return object{"name": name, "in": in, "required": required, "description": words, "schema": schema}
}

func refusals(out object, statuses ...int) object {
	for _, status := range statuses {
		out[strconv.Itoa(status)] = response("A refusal.", ref("error"))
	}
	return out
}

// place is the parameters of a path to a session.
func (l *Listener) place() []any {
	name := param("path", "session", true, "The id of the session.", object{"type": "string", "pattern": sessionPattern})
	if l.Agents {
		name = param("path", "session", true, "Any text of 1 to 256 bytes of UTF-8.", object{"type": "string", "minLength": 1, "maxLength": 256})
	}
	return []any{param("path", "tenant", true, "The tenant of the session.", object{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}), name}
}

// publish describes the events that are published.
func (l *Listener) publish(all map[string]*jsonschema.Schema, paths object, used map[string]bool) error {
	for path, kind := range l.Verbs {
		about, payload := verbSummaries[path], all[string(kind)]
		if about == "" || payload == nil {
			return fmt.Errorf("%s has no summary, or %s no schema", path, kind)
		}
		used["event-response"], used[string(kind)] = true, true
		answer := ref("event-response")
		paths[session+path] = object{"post": object{
			"operationId": "publish-" + path, "summary": about,
			"parameters": append(l.place(),
				param("query", "wait_ms", false, "How long the answer waits for the decision.", object{"type": "integer", "minimum": 0, "maximum": events.MaxWait.Milliseconds()}),
				param("header", "Idempotency-Key", false, "The id of the event, where it has none.", object{"type": "string", "minLength": 1, "maxLength": 256})),
			"requestBody": object{"content": object{"application/json": object{"schema": ref(string(kind))}}},
			"responses": refusals(object{
				"200": response("The event was taken.", answer), "202": response("It is stored, and not decided yet.", answer),
				"422": response("It is stored, and was refused.", answer),
			}, 400, 401, 403, 405, 409, 413, 429, 500, 503),
		}}
	}
	return nil
}

// gateways describes what gateways call.
func gateways(paths object, used map[string]bool) {
	for _, g := range gatewayPaths {
		about := object{"operationId": g.name, "summary": g.summary}
		if g.hash {
			about["parameters"] = []any{param("path", "hash", true, "That of a placeholder.", object{"type": "string", "pattern": "^[0-9a-f]{24}$"})}
		} else {
			about["parameters"] = []any{param("header", events.SessionHeader, false, "The name of the session, where the body has none.", object{"type": "string", "maxLength": 256})}
			about["requestBody"] = object{"content": object{"application/json": object{"schema": ref(g.name + "-request")}}}
			used[g.name+"-request"] = true
		}
		used[g.name+"-response"] = true
		about["responses"] = refusals(object{"200": response("The answer.", ref(g.name+"-response"))}, g.refusals...)
		paths[g.path] = object{g.method: about}
	}
}

// token describes how an agent gets a token for its model.
func (l *Listener) token(paths object, used map[string]bool) {
	used["token-response"] = true
	paths[session+"token"] = object{"post": object{
		"operationId": "token", "summary": "A token of the session for its model, over MCP.",
		"parameters": append(l.place(),
			param("query", "expires_in_s", false, "How long it is in force; an hour by default, and no longer than the token of the request.", object{"type": "integer", "minimum": 60, "maximum": 86400})),
		"responses": refusals(object{"200": response("The answer.", ref("token-response"))}, 400, 401, 403, 404, 405, 429, 500, 503),
	}}
}

// stream describes the outcomes as they come, and pages the documents themselves.
func (l *Listener) stream(paths object) {
	path, words := session+"events", "The outcomes of the session, as server-sent events: the kind as event, the payload as data, the sequence as id."
	parameters := append(l.place(), param("query", "branches", false, "The outcomes of branches too, with the id of their session as session.", object{"type": "string", "enum": []string{"true", "false"}}))
	if !l.Agents {
		path, words = "/v1/events", "Outcomes of all sessions as they are stored, as server-sent events without payload; takeover is a new owner of a partition."
		parameters = []any{
			param("query", "tenant", false, "Of this tenant alone.", object{"type": "string"}),
			param("query", "session", false, "Of this session alone.", object{"type": "string"}),
		}
	}
	events := object{"description": words, "content": object{"text/event-stream": object{"schema": object{"type": "string"}}}}
	paths[path] = object{"get": object{
		"operationId": "events", "summary": words,
		"parameters": append(parameters,
			param("header", "Last-Event-ID", false, "Resume after this sequence.", object{"type": "string", "pattern": "^[0-9]+$"}),
			param("query", "after", false, "The same, for clients that cannot set headers.", object{"type": "integer", "minimum": 0})),
		"responses": refusals(object{"200": events}, 400, 401, 403, 405, 410, 429, 500, 503),
	}}
}

// pages describes the documents about the requests.
func (l *Listener) pages(paths object) {
	document := func(id, words string, parameters ...any) object {
		out := object{"operationId": id, "summary": words, "responses": refusals(object{"200": response(words, object{"type": "object"})}, 401, 403, 404, 405)}
		if len(parameters) > 0 {
			out["parameters"] = parameters
		}
		return object{"get": out}
	}
	paths["/v1/openapi.json"] = document("openapi", "This document.")
	if !l.Agents {
		paths["/v1/schema/{name}"] = document("schema", "The JSON Schema of a payload.", param("path", "name", true, "As turn or check-request.", object{"type": "string"}))
	}
}

// summaries describe the operations.
var summaries = map[string]string{
	"attach":   "Decides which parts of files enter the next call.",
	"check":    "Reports whether the next call fits, with the additions.",
	"context":  "The effective history, as an agent should send it.",
	"files":    "The files that a session has read and changed.",
	"history":  "The compactions of a session: when and why.",
	"health":   "The health of the worker that answers.",
	"outcome":  "Reports whether an event was taken or refused, and why.",
	"recall":   "Returns original messages by their place, or finds a text.",
	"sessions": "The sessions of a tenant, in pages.",
	"stats":    "The state of a session.",
	"timeline": "The growth of a session, and what its compactions removed.",
	"changes":  "Lists the change of each message by a compaction.",
	"xray":     "Lists the contents of a session's window.",
	"preview":  "Shows the result that a session.compact would have now.",
	"whatif":   "Replays the session under other policies.",
	"fleet":    "The workers, and the owner of each partition.",
	"policies": "The policy that operators set for a tenant, and its revisions.",
	"policy":   "Sets the policy of a tenant, which running workers follow.",
	"tenants":  "The tenants, with sums over their sessions.",
	"sync":     "Takes the agent's whole history, and returns the messages to send.",
}

// object is a JSON object of a document.
type object = map[string]any

// OpenAPI describes the requests of a listener as OpenAPI 3.1. all are the schemas of [All].
func (l *Listener) OpenAPI(all map[string]*jsonschema.Schema) (map[string]any, error) {
	paths, used := object{}, map[string]bool{"error": true}
	for _, op := range l.Operations {
		about, err := op.describe(all, used)
		if err != nil {
			return nil, fmt.Errorf("describe %s %s: %w", op.Method, op.Path, err)
		}
		paths[op.Path] = object{strings.ToLower(op.Method): about}
	}
	if err := l.publish(all, paths, used); err != nil {
		return nil, fmt.Errorf("describe events: %w", err)
	}
	token, security := "That of the worker (COMPACTD_HTTP_TOKEN or --http-token-file), in one header Authorization and nowhere else; none is needed on loopback without one.", []any{object{}, object{"token": []any{}}}
	if l.Agents {
		gateways(paths, used)
		l.token(paths, used)
		token, security = "One of --agents-tokens, in one header Authorization.", []any{object{"token": []any{}}}
	}
	l.stream(paths)
	l.pages(paths)
	components := object{}
	for name := range used {
		components[name] = component(all[name])
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": l.Title, "version": strconv.Itoa(events.Version) + ".0.0",
			"description": "docs/format/wire.md explains the fields.",
		},
		"servers":  []any{object{"url": l.URL}},
		"paths":    paths,
		"security": security,
		"components": object{
			"schemas":         components,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": token}},
		},
	}, nil
}

func (op *Operation) describe(all map[string]*jsonschema.Schema, used map[string]bool) (object, error) {
	about := summaries[op.Name]
	if about == "" {
		return nil, fmt.Errorf("%s has no summary", op.Name)
	}
	out := object{"operationId": op.Name, "summary": about, "responses": op.responses(used)}
	var parameters []any
	for _, name := range op.InPath {
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": plain(all[op.Request].Properties[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(op.InQuery)) {
		field := all[op.Request].Properties[name]
		if field == nil {
			return nil, fmt.Errorf("%s has no field %s", op.Request, name)
		}
		p := object{"name": name, "in": "query", "schema": plain(field)}
		if pattern := op.InQuery[name]; pattern != "" {
			p["schema"] = &jsonschema.Schema{Type: "string", Pattern: pattern}
		}
		if field.Description != "" {
			p["description"] = field.Description
		}
		parameters = append(parameters, p)
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if op.Body {
		out["requestBody"] = object{"content": object{"application/json": object{"schema": op.body(all)}}}
	}
	return out, nil
}

// body is the request without the fields in the path.
func (op *Operation) body(all map[string]*jsonschema.Schema) *jsonschema.Schema {
	s := component(all[op.Request])
	s.Properties = maps.Clone(s.Properties)
	for _, name := range op.InPath {
		delete(s.Properties, name)
	}
	inPath := func(name string) bool { return slices.Contains(op.InPath, name) }
	s.Required = slices.DeleteFunc(slices.Clone(s.Required), inPath)
	s.PropertyOrder = slices.DeleteFunc(slices.Clone(s.PropertyOrder), inPath)
	return s
}

func (op *Operation) responses(used map[string]bool) object {
	var answers []any
	for _, name := range op.Responses {
		used[name] = true
		answers = append(answers, ref(name))
	}
	schema := answers[0]
	if len(answers) > 1 {
		schema = object{"anyOf": answers}
	}
	return refusals(object{"200": response("The answer.", schema)}, op.Refusals...)
}

func response(words string, schema any) object {
	return object{"description": words, "content": object{"application/json": object{"schema": schema}}}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// component is a schema as a part of a document: its $id would be another document.
func component(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	c.ID, c.Schema = "", ""
	return &c
}

// plain is the schema of a field in a path or a query: there is no null.
func plain(s *jsonschema.Schema) *jsonschema.Schema {
	p := *s
	p.Description, p.Types = "", nil
	if p.Type == "" && len(s.Types) > 0 {
		p.Type = s.Types[0]
	}
	return &p
}
