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

func isDatabase(br *bufio.Reader) bool {
	begin, _ := br.Peek(len(sqlite.Magic))
	return string(begin) == sqlite.Magic
}

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
	if isDatabase(br) {
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
	for _, f := range formats {
		if f.is(raw) {
			return f.from
		}
	}
	return ""
}

// first is the first item of an array, nil without. It takes no memory for the others.
func first(raw codec.Raw) codec.Raw {
	items, err := codec.ReadFirst(raw, 1)
	if err != nil || len(items) == 0 {
		return nil
	}
	return items[0]
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
