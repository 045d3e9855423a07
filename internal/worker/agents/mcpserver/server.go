package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/events"
)

// Source is where a server reads its session, and requests a compaction.
type Source interface {
	// Ask sends one request about the session, as over NATS, and reads the answer.
	Ask(ctx context.Context, operation string, request, answer any) error
	// Compactions calls fn for each session.compacted that is stored, oldest first.
	Compactions(ctx context.Context, fn func(*events.Compacted) error) error
	// Compact requests a compaction, and returns what became of it.
	Compact(ctx context.Context, focus string) (*events.EventResponse, error)
}

// maxRequestBytes bounds a request: the longest is a focus.
const maxRequestBytes = 64 << 10

// Handler answers over HTTP, with the server that is for a request. It keeps no state between
// requests.
func Handler(open func(*http.Request) *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(open, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxRequestBytes, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // every request has a token, and pages of browsers are refused
	})
}

// New returns a server for one session.
func New(version string, a events.Address, from Source) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "compactd", Title: "Session history", Version: version}, &mcp.ServerOptions{
		Instructions: "The history of this session is compacted to fit the context window. These tools look up what was removed.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
	})
	s.AddReceivingMiddleware(recovered)
	v := &viewer{address: a, from: from}
	for _, t := range tools {
		s.AddTool(&mcp.Tool{
			Name: t.name, Description: t.description, InputSchema: json.RawMessage(t.schema),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.writes, IdempotentHint: !t.writes, DestructiveHint: new(bool), OpenWorldHint: new(bool)},
		}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := t.call(v, ctx, r.Params.Arguments)
			if err != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: explain(err)}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	}
	v.addResources(s)
	return s
}

// recovered makes an error of a panic, which would end the process: the SDK calls from goroutines of its own.
func recovered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s: panic: %v", method, p)
			}
		}()
		return next(ctx, method, r)
	}
}

// viewer reads one session.
type viewer struct {
	address events.Address
	from    Source
}

// tool is one function that a model may call.
type tool struct {
	name, description, schema string
	writes                    bool
	call                      func(*viewer, context.Context, json.RawMessage) (string, error)
}

// typed reads the arguments of a tool. Unknown ones are errors: a model corrects them.
func typed[A any](call func(*viewer, context.Context, *A) (string, error)) func(*viewer, context.Context, json.RawMessage) (string, error) {
	return func(v *viewer, ctx context.Context, arguments json.RawMessage) (string, error) {
		var a A
		if len(arguments) > 0 {
			if err := events.UnmarshalStrict(events.Raw(arguments), &a); err != nil {
				return "", events.NewInvalid(events.CodeBadType, "", "an argument is unknown, occurs twice, or has the wrong type")
			}
		}
		return call(v, ctx, &a)
	}
}

// explain is what a model receives about an error.
func explain(err error) string {
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return fmt.Sprintf("%s: %s. %s", refused.Code, refused.Message, refused.Hint)
	}
	if bad, ok := errors.AsType[*events.Invalid](err); ok {
		return fmt.Sprintf("%s: %v. %s", bad.Code(), bad, bad.Hint())
	}
	return "unavailable: the session cannot be read now. Try again in a moment."
}

// errUnknown: nothing was published of the session.
var errUnknown = &events.ServiceError{V: events.Version, Code: events.CodeUnknownTurn, Message: "the session has no turns", Hint: "Nothing was removed: the whole history is in view."}
