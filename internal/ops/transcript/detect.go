package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"compactd/internal/events/codec"
	"compactd/internal/ops/sqlite"
)

// ErrUnknown: no format was recognized.
var ErrUnknown = errors.New("no transcript of a known format")

// detect finds the format of a file.
func detect(path string) (From, error) {
	f, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	from := detectIn(f)
	if from == database {
		from, err = detectRows(path)
	}
	if err == nil && from == "" {
		err = ErrUnknown
	}
	return from, err
}

// database is a file of SQLite, of any program.
const database From = "database"

// detectRows finds the format of a database by its tables.
func detectRows(path string) (From, error) {
	db, err := sqlite.Open(path)
	if err != nil {
		return "", err
	}
	defer db.Close()
	for _, name := range []string{"session", "message", "part"} {
		if _, err := db.Table(name); err != nil {
			return "", nil // it is of another program
		}
	}
	return Opencode, nil
}

// maxLooked is how many lines are looked at for one that has the format.
const maxLooked = 10

// detectIn looks at the first lines, then at the whole as one document; "" is none
// that is known.
func detectIn(r io.Reader) From {
	br := bufio.NewReader(r)
	if begin, _ := br.Peek(len(sqlite.Magic)); string(begin) == sqlite.Magic {
		return database
	}
	var all []byte
	for range maxLooked {
		line, err := readLine(br, maxDocument-len(all)) // it may be the whole document
		if errors.Is(err, errLong) {
			return ""
		}
		if from := detectValue(line); from != "" {
			return from
		}
		if all = append(all, line...); err != nil {
			break
		}
	}
	whole, err := document(io.MultiReader(bytes.NewReader(all), br))
	if err != nil {
		return ""
	}
	return detectValue(whole)
}

// detectValue recognises a format by the members of its first value.
func detectValue(data []byte) From {
	raw := codec.Raw(bytes.TrimSpace(data))
	if !raw.IsValid() {
		return ""
	}
	for _, s := range shapes {
		if s.is(raw) {
			return s.from
		}
	}
	return ""
}

// shapes are the members by which formats are known; the first that fits counts.
var shapes = []struct {
	from From
	is   func(codec.Raw) bool
}{
	{Compactd, func(raw codec.Raw) bool { return has(raw, "session", "kind") }},
	{Codex, func(raw codec.Raw) bool {
		return has(raw, "timestamp", "type", "payload") || has(raw, "id", "timestamp", "instructions")
	}},
	{Pi, func(raw codec.Raw) bool { return is(raw, "session") && has(raw, "id", "cwd") }},
	{Copilot, func(raw codec.Raw) bool { return has(raw, "type", "data", "parentId") && !has(raw, "customType") }},
	{Gemini, func(raw codec.Raw) bool { return has(raw, "sessionId", "projectHash") }},
	{Gemini, func(raw codec.Raw) bool {
		_, ok := geminiContents(raw)
		return ok && !has(raw, "toolCall")
	}},
	{Opencode, func(raw codec.Raw) bool {
		return has(raw, "id", "title", "time") && (has(raw, "projectID") || has(raw, "directory")) || has(raw, "info", "messages") && has(first(member(raw, "messages")), "info", "parts")
	}},
	{MiniSWEAgent, func(raw codec.Raw) bool {
		return has(raw, "trajectory_format", "messages") || has(raw, "info", "messages")
	}},
	{SWEAgent, func(raw codec.Raw) bool { // Gemini CLI's states for undoing a call have a history too
		return has(raw, "history") && !has(raw, "toolCall") || has(raw, "trajectory")
	}},
	{OpenAI, func(raw codec.Raw) bool { return has(raw, "messages") || has(first(raw), "role") }},
	{ClaudeCode, func(raw codec.Raw) bool {
		return has(raw, "type", "sessionId") || has(raw, "type", "uuid") || has(raw, "type", "leafUuid") || has(raw, "type", "messageId")
	}},
}

// member is that of an object, nil without.
func member(raw codec.Raw, name string) codec.Raw {
	for k, v := range codec.Members(raw) {
		if k == name {
			return v
		}
	}
	return nil
}

// first is the first item of an array, nil without. It takes no memory for the others.
func first(raw codec.Raw) (item codec.Raw) {
	if raw.Kind() != '[' {
		return nil
	}
	w := codec.Walk(raw)
	w.Array(func() {
		if v := w.Value(); item == nil {
			item = v
		}
	})
	return item
}

// is reports whether an object is of this type.
func is(raw codec.Raw, kind string) bool {
	text, _ := codec.Text(member(raw, "type"))
	return text == kind
}

// has reports whether a value is an object with all of these members.
func has(raw codec.Raw, keys ...string) bool {
	n := 0
	for k := range codec.Members(raw) {
		if slices.Contains(keys, k) {
			n++
		}
	}
	return n >= len(keys)
}
