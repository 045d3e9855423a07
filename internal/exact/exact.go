package exact

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// tables by the names they have in a config. Package tokenizer itself, which finds a
// table by name, would link those of models long gone too.
var tables = map[string]func() *codec.Codec{
	"o200k":  codec.NewO200kBase,
	"cl100k": codec.NewCl100kBase,
}

// Counter counts tokens by one table. It is a measure.Counter.
type Counter struct {
	name  string
	codec *codec.Codec
}

// New returns the counter of a name: o200k for GPT-4o and later, cl100k for GPT-4.
// The first call for a table takes 0.1 s.
func New(name string) (*Counter, error) {
	load, ok := tables[name]
	if !ok {
		return nil, fmt.Errorf("count tokens by %q: there are o200k and cl100k", name)
	}
	return &Counter{name, load()}, nil
}

// Name is o200k or cl100k.
func (c *Counter) Name() string { return c.name }

// Count returns the tokens of a text.
func (c *Counter) Count(text string) int64 {
	var n int64
	for len(text) > 0 {
		end := pieceOf(text)
		k, err := c.codec.Count(text[:end])
		if err != nil { // its pattern has no limit of time, so none can be exceeded
			k = end
		}
		n += int64(k)
		text = text[end:]
	}
	return n
}

// maxRun bounds what the table merges at once, in bytes.
const maxRun = 1_024

// pieceOf returns where the first piece of a text ends: at its end, or where a
// run gets too long, never inside a rune.
func pieceOf(text string) int {
	start := 0
	for i := range len(text) {
		if i > 0 && blank(text[i]) != blank(text[i-1]) {
			start = i
		}
		if i-start >= maxRun && utf8.RuneStart(text[i]) {
			return i
		}
	}
	return len(text)
}

func blank(b byte) bool { return strings.IndexByte(" \t\r\n", b) >= 0 }
