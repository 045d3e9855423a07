package schematest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events/schema/schematest"
)

// least are the shortest payloads that a decoder takes.
var least = map[string]string{
	"turn": `{"messages":[]}`, "compact": `{}`, "rewind": `{"steps":1}`, "overflow": `{"status":400}`, "end": `{}`, "forget": `{}`, "idle": `{"since":1}`, "branch": `{"branch":"s"}`,
	"summary":        `{"job":"j","text":"t"}`,
	"attach-request": `{"session":"s","attachments":[]}`,
	"check-request":  `{"session":"s"}`, "context-request": `{"session":"s"}`, "files-request": `{"session":"s"}`, "history-request": `{"session":"s"}`, "stats-request": `{"session":"s"}`,
	"recall-request": `{"session":"s","turn":1}`, "outcome-request": `{"session":"s","seq":1}`,
	"sessions-request": `{}`, "tenants-request": `{}`, "fleet-request": `{}`,
	"policies-request": `{}`, "policy-request": `{"policy":""}`,
	"timeline-request": `{"session":"s"}`, "changes-request": `{"session":"s"}`, "xray-request": `{"session":"s"}`,
	"preview-request": `{"session":"s"}`, "whatif-request": `{"session":"s"}`,
	"sync-request": `{"session":"s","messages":[]}`, "compress-request": `{"messages":[]}`, "usage-request": `{"view":"0:a","usage":{}}`,
}

// values are put into every field, one at a time.
var values = []string{
	`null`, `true`, `-1`, `0`, `1`, `2`, `100`, `101`, `400`, `501`, `599`, `600`, `1.5`, `7e0`, `2147483648`, `2147483649`, `1099511627776`, `1099511627777`, `1e30`,
	`""`, `"s"`, `" "`, `"anthropic"`, `"0.s"`, `"@7.a.s"`, `"@-7.a."`, `"@7.s"`, `"fill"`, `"sessions"`, `"desc"`, `"warning"`, `"*"`, `"a.b"`, `"é"`, `"\n"`,
	`"` + strings.Repeat("x", 64) + `"`, `"` + strings.Repeat("x", 65) + `"`,
	`"` + strings.Repeat("x", 256) + `"`, `"` + strings.Repeat("x", 257) + `"`, `"` + strings.Repeat("x", 352) + `"`,
	`"` + strings.Repeat("x", 353) + `"`, `"` + strings.Repeat("x", 1025) + `"`, `"` + strings.Repeat("x", 4097) + `"`,
	`{}`, `[]`, `[{}]`, `{"turn":1}`, `{"turn":0}`, `{"turn":1,"index":-1}`, `{"provider":7}`, `{"provider":"x","context_window":0}`, `{"later":true}`,
	`[{"text":"t"}]`, `[{"text":"t","bytes":1,"name":"n","type":"x"}]`, `[{"text":7}]`, `[{"text":null,"bytes":1}]`, `[{"name":7,"bytes":1}]`,
	`[{"bytes":1}]`, `[{"bytes":-1}]`, `[{"bytes":1,"type":7}]`, `[{"bytes":null}]`, `[` + strings.Repeat(`{"bytes":1},`, 100) + `{"bytes":1}]`,
}

// For every field of every payload that comes from outside, and every value of the
// list, schema and decoder agree; a field of a later version is let through.
func TestSchemasAgreeWithDecoders(t *testing.T) {
	all, err := schematest.All(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	refused, taken := 0, 0
	for _, p := range schematest.Payloads() {
		if !p.In {
			continue
		}
		s, err := all[p.Name].Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		for _, field := range append(slices.Sorted(maps.Keys(all[p.Name].Properties)), "later", "") {
			for _, value := range values {
				data := set(t, least[p.Name], field, value)
				decoded := p.Decode(data)
				if valid := validate(t, s, data); (valid == nil) != (decoded == nil) {
					t.Errorf("%s: %.200s\n  decoder: %v\n  schema: %v", p.Name, data, decoded, valid)
				} else if decoded == nil {
					taken++
				} else {
					refused++
				}
			}
		}
	}
	if refused < 1000 || taken < 1000 {
		t.Errorf("%d refused, %d taken: the test shows too little", refused, taken)
	}
}

// set puts a value into a payload, in place of its own; field "" leaves out one
// field after the other with the index of value.
func set(t *testing.T, payload, field, value string) []byte {
	t.Helper()
	var doc map[string]json.RawMessage
	if err := json.Unmarshal([]byte(payload), &doc); err != nil {
		t.Fatal(err)
	}
	if field != "" {
		doc[field] = json.RawMessage(value)
	} else if names := slices.Sorted(maps.Keys(doc)); len(names) > 0 {
		delete(doc, names[slices.Index(values, value)%len(names)])
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func validate(t *testing.T, s *jsonschema.Resolved, data []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, data))
	}
	return s.Validate(v)
}

// The payloads of version 1 that are kept for ever are valid.
func TestOldFixturesAreValid(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "v1")
	for _, file := range files(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(file, ".json"), "-")
		if err := schematest.Validate(name, data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
