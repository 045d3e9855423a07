package schematest_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
)

var headings = regexp.MustCompile(`(?m)^##+ (.+)$`)

// Every payload that docs/format/wire.md and streams.md show is one that its section is about: it is
// valid, and has no field that the contract has not. Payloads cut short with … are left out.
func TestWirePage(t *testing.T) {
	var page []byte
	for _, name := range []string{"wire.md", "streams.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "format", name))
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	shown := map[string]bool{}
	at := headings.FindAllSubmatchIndex(page, -1)
	for i, h := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		title := string(page[h[2]:h[3]])
		for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page[h[1]:end], -1) {
			if strings.Contains(string(m[1]), "…,") || strings.Contains(string(m[1]), "  …\n") || strings.Contains(string(m[1]), ",…") {
				continue
			}
			name, err := shownIn(title, m[1])
			if err != nil {
				t.Errorf("%s: %v\n%s", title, err, m[1])
			}
			shown[name] = true
		}
	}
	for _, p := range schematest.Payloads() {
		if !shown[p.Name] && !rarely[p.Name] {
			t.Errorf("docs/format/wire.md and streams.md show no %s", p.Name)
		}
	}
}

// rarely are payloads that the page has in its text, or cut short.
var rarely = map[string]bool{
	"end": true, "forget": true, "idle": true, "branch": true, "summary": true, "compacted": true, "erased": true, "event-response": true,
	"timeline-request": true, "timeline-response": true, "changes-request": true, "changes-response": true, "xray-request": true, "xray-response": true,
	"preview-request": true, "preview-response": true, "whatif-request": true, "whatif-response": true,
	"compress-request": true, "compress-response": true, "usage-request": true, "usage-response": true, "retrieve-response": true, "token-response": true, // over HTTP only
}

// shownIn names the payload that an example of a section is.
func shownIn(title string, data []byte) (string, error) {
	var errs error
	for _, p := range schematest.Payloads() {
		if !about(title, p.Name) {
			continue
		}
		err := schematest.Validate(p.Name, data)
		if err == nil {
			err = codec.UnmarshalStrict(data, reflect.New(p.Type).Interface())
		}
		if err == nil {
			return p.Name, nil
		}
		errs = errors.Join(errs, err)
	}
	return "", errors.Join(errors.New("no payload of this section"), errs)
}

// about reports whether a section may show a payload.
func about(title, name string) bool {
	verb, _, _ := strings.Cut(strings.TrimPrefix(name, "search-"), "-")
	switch {
	case strings.HasPrefix(title, "session."):
		return name == "turn" || title == "session."+name || title == "session.forget" && name == "forgotten"
	case strings.HasPrefix(title, "compactd."):
		return title == "compactd."+verb || title == "compactd.recall" && strings.HasPrefix(name, "search-")
	case title == "Refusals":
		return name == "error"
	case title == "Jobs":
		return name == "job"
	default:
		return name == "turn"
	}
}
