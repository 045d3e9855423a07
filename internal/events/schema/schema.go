package schema

import (
	"embed"
	"fmt"
)

//go:embed openapi.json openapi-agents.json payloads/*.json
var pages embed.FS

// ID is the $id of a payload's schema, the same as long as the contract has this
// version. It is a name, not an address.
func ID(name string) string { return "urn:compactd:v1:" + name }

// Payload returns the JSON Schema of a payload, such as turn or check-request.
func Payload(name string) ([]byte, error) {
	data, err := pages.ReadFile("payloads/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("read schema %q: %w", name, err)
	}
	return data, nil
}

// OpenAPI returns the description of the requests of operators over HTTP.
func OpenAPI() ([]byte, error) { return pages.ReadFile("openapi.json") }

// AgentsOpenAPI is that of the listener for agents.
func AgentsOpenAPI() ([]byte, error) { return pages.ReadFile("openapi-agents.json") }
