package mcpserver

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/events"
)

// A panic is an error of one answer, and the server goes on.
func TestPanicIsAnError(t *testing.T) {
	begin := func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
	server, client := mcp.NewInMemoryTransports()
	serving, err := New("dev", events.Address{Tenant: "acme", Session: "s"}, nil, begin).Connect(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer serving.Close()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if out, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "context_stats"}); err == nil {
		t.Errorf("a tool: %v", out)
	}
	if out, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: generationURI + "1"}); err == nil {
		t.Errorf("a resource: %v", out)
	}
	if err := s.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
