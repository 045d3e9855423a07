package workertest

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCP connects to the server of a session.
func (e *Edge) MCP(token, tenant, session string) (*mcp.ClientSession, error) {
	e.T.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(e.T.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://" + e.Listener.Addr() + "/mcp/" + tenant + "/" + Escape(session), HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
	}, nil)
	if err == nil {
		e.T.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// CallTool returns the text of a tool, and whether it is an error.
func (e *Edge) CallTool(s *mcp.ClientSession, name string, arguments map[string]any) (string, bool) {
	e.T.Helper()
	out, err := s.CallTool(e.T.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		e.T.Fatalf("%s: %v", name, err)
	}
	return out.Content[0].(*mcp.TextContent).Text, out.IsError
}

// bearer sends a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
