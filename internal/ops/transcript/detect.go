package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"compactd/internal/events"
)

// errUnknown: no format was recognized.
var errUnknown = errors.New("is no transcript of a known format; name it with --from claude-code, openai, swe-agent or compactd")

// detect finds the format of a file.
func detect(path string) (From, error) {
	if strings.Contains(filepath.Base(path), ".traj") {
		return SWEAgent, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := unzip(path, f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if from := detectIn(r); from != "" {
		return from, nil
	}
	return "", fmt.Errorf("%s %w", path, errUnknown)
}

// maxLooked is how many lines are looked at for one that has the format.
const maxLooked = 10

// detectIn looks at the first lines, then at the whole as one document; "" is none
// that is known.
func detectIn(r io.Reader) From {
	br := bufio.NewReader(r)
	var all []byte
	for range maxLooked {
		line, err := readLine(br, maxLine)
		if from := detectValue(line); from != "" {
			return from
		}
		if all = append(all, line...); err != nil {
			break
		}
	}
	rest, err := document(br)
	if err != nil {
		return ""
	}
	return detectValue(append(all, rest...))
}

// detectValue recognises a format by the members of its first value.
func detectValue(data []byte) From {
	raw := events.Raw(bytes.TrimSpace(data))
	if !raw.IsValid() {
		return ""
	}
	if raw.Kind() == '[' {
		var items []events.Raw
		if events.Unmarshal(raw, &items) == nil && len(items) > 0 && has(items[0], "role") {
			return OpenAI
		}
		return ""
	}
	switch {
	case has(raw, "session") && has(raw, "kind"):
		return Compactd
	case has(raw, "history"), has(raw, "trajectory"):
		return SWEAgent
	case has(raw, "messages"):
		return OpenAI
	case has(raw, "type") && (has(raw, "sessionId") || has(raw, "uuid") || has(raw, "leafUuid") || has(raw, "messageId")):
		return ClaudeCode
	default:
		return ""
	}
}

func has(raw events.Raw, key string) bool {
	for k := range events.Members(raw) {
		if k == key {
			return true
		}
	}
	return false
}
