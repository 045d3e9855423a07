// Package format holds the machine-readable pages of this folder, which workers
// serve as they are: the JSON Schemas and the OpenAPI document.
//
//	data, err := format.Schema("turn")
//
// # Guarantees
//
// The pages are those of the program's version: tests keep them in step with the
// structs they describe.
//
// # Concurrency
//
// All functions may be called at any time.
//
// # On failure
//
// A name without a page is an error, as [fs.ErrNotExist].
package format

import (
	"embed"
	"fmt"
)

//go:embed openapi.json schema/*.json
var pages embed.FS

// ID is the $id of a payload's schema, the same as long as the contract has this
// version. It is a name, and leads nowhere.
func ID(name string) string { return "urn:compactd:v1:" + name }

// Schema returns the JSON Schema of a payload, such as turn or check-request.
func Schema(name string) ([]byte, error) {
	data, err := pages.ReadFile("schema/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("read schema %q: %w", name, err)
	}
	return data, nil
}

// OpenAPI returns the description of the requests over HTTP.
func OpenAPI() ([]byte, error) { return pages.ReadFile("openapi.json") }
