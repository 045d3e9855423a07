package schematest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events/schema"
)

// Validate checks a payload against the schema of its name, as it is shipped.
func Validate(name string, data []byte) error {
	all, err := shipped()
	if err != nil {
		return err
	}
	s := all[name]
	if s == nil {
		return fmt.Errorf("validate %s: there is no such schema", name)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("validate %s: %w", name, err)
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("validate %s: %w", name, err)
	}
	return nil
}

// shipped are the schemas of internal/events/schema/payloads, ready to be used.
var shipped = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	out := map[string]*jsonschema.Resolved{}
	for _, p := range payloads {
		data, err := schema.Payload(p.Name)
		if err != nil {
			return nil, err
		}
		s := &jsonschema.Schema{}
		if err := json.Unmarshal(data, s); err != nil {
			return nil, fmt.Errorf("read schema %s: %w", p.Name, err)
		}
		if out[p.Name], err = s.Resolve(nil); err != nil {
			return nil, fmt.Errorf("read schema %s: %w", p.Name, err)
		}
	}
	return out, nil
})
