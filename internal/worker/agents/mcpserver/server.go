package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/service"
)

// maxRequestBytes limits a request: the longest has a focus.
const maxRequestBytes = 64 << 10

// Handler answers over HTTP with the server that open returns for a request. It keeps no state between
// requests.
func Handler(open func(*http.Request) *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(open, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxRequestBytes, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the edge requires a token and refuses browser pages
	})
}

// New returns a server for one session of a service. It calls begin before each method, and end after it.
func New(version string, a events.Address, service *service.Service, begin func(context.Context) (_ context.Context, end func())) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "compactd", Title: "Session history", Version: version}, &mcp.ServerOptions{
		Instructions: "The history of this session is compacted to fit the context window. These tools look up what was removed.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return recovered(begin, next) })
	v := &session{a, service}
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

// recovered turns a panic into an error: the SDK calls from its own goroutines, where a panic ends the process.
func recovered(begin func(context.Context) (context.Context, func()), next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (_ mcp.Result, err error) {
		ctx, end := begin(ctx)
		defer end()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s: panic: %v", method, p)
			}
		}()
		return next(ctx, method, r)
	}
}

// session is the session of a server, with the service that reads it.
type session struct {
	events.Address
	service *service.Service
}

// tool is one function that a model may call.
type tool struct {
	name, description, schema string
	writes                    bool
	call                      func(*session, context.Context, json.RawMessage) (string, error)
}

// typed decodes the arguments of a tool. Unknown arguments are errors, so that a model corrects them.
func typed[A any](call func(*session, context.Context, *A) (string, error)) func(*session, context.Context, json.RawMessage) (string, error) {
	return func(v *session, ctx context.Context, arguments json.RawMessage) (string, error) {
		var a A
		if len(arguments) > 0 {
			if err := codec.UnmarshalStrict(codec.Raw(arguments), &a); err != nil {
				return "", events.NewInvalid(events.CodeBadType, "", "an argument is unknown, occurs twice, or has the wrong type")
			}
		}
		return call(v, ctx, &a)
	}
}

// explain returns the text of an error for a model.
func explain(err error) string {
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return fmt.Sprintf("%s: %s. %s", refused.Code, refused.Message, refused.Hint)
	}
	if bad, ok := errors.AsType[*events.Invalid](err); ok {
		return fmt.Sprintf("%s: %v. %s", bad.Code(), bad, bad.Hint())
	}
	return "unavailable: the session cannot be read now. Try again in a moment."
}

// errUnknown: the session has no events.
var errUnknown = events.Refuse(events.CodeUnknownTurn, "the session has no turns", "Nothing was removed: the whole history is in view.")
