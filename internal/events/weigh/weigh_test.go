package weigh_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/weigh"
)

// Units and bytes are those of the text in every script, and more text is never fewer tokens.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		name, text             string
		units, bytes, newlines int64
	}{
		{"empty", "", 0, 0, 0},
		{"ASCII", "func main() {}\n", 15, 15, 1},
		{"accents", "déjà vu", 7, 9, 0},
		{"Cyrillic", "привет", 6, 12, 0},
		{"Chinese", "压缩会话", 4, 12, 0},
		{"emoji", "👋🌍", 4, 8, 0},
	} {
		got := weigh.Text(c.text)
		if got.Units != c.units || got.Bytes != c.bytes || got.Newlines != c.newlines {
			t.Errorf("%s: %+v", c.name, got)
		}
		if (got.Base == 0) != (c.text == "") {
			t.Errorf("%s has %d tokens", c.name, got.Base)
		}
		if more := weigh.Text(c.text + c.text); more.Base < got.Base {
			t.Errorf("%s: twice the text has %d tokens, once %d", c.name, more.Base, got.Base)
		}
	}
}

// The units, bytes and newlines of two texts add up. Tokens add up but for the step from one text to the other,
// of at most 3 tokens, and for rounding; none has fewer than the floor.
func TestTextsAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		x, y, both := weigh.Text(a), weigh.Text(b), weigh.Text(a+b)
		if both.Units != x.Units+y.Units || both.Bytes != x.Bytes+y.Bytes || both.Newlines != x.Newlines+y.Newlines {
			t.Fatalf("%+v and %+v are %+v", x, y, both)
		}
		if both.Base > x.Base+y.Base+3 || both.Base*weigh.FloorBytes < both.Bytes {
			t.Fatalf("%+v and %+v are %+v", x, y, both)
		}
		if of := weigh.Text([]byte(a)); of != x {
			t.Fatalf("as bytes %+v, as a string %+v", of, x)
		}
	})
}

// A JSON string weighs as the text that it encodes, however it is escaped, and ends at its quote.
func TestStringIsItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		q, skipped := weigh.String(append(raw, `,"x"`...)), weigh.Skip(raw)
		if want := weigh.Text(text); q.Size != want || q.Len != len(raw) {
			t.Fatalf("%s: %+v in %d bytes, the text %+v", raw, q.Size, q.Len, want)
		}
		if skipped.Len != q.Len {
			t.Fatalf("%s: Skip reads %d bytes, String %d", raw, skipped.Len, q.Len)
		}
	})
	for _, bad := range []string{``, `x`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, "\"\n\""} {
		if q := weigh.String([]byte(bad)); q.Len != 0 {
			t.Errorf("%q is a string of %d bytes", bad, q.Len)
		}
	}
}

// An escape beyond ASCII weighs in JSON as its character.
func TestEscapesInJSON(t *testing.T) {
	for escaped, plain := range map[string]string{
		`{"a":"\u043f\u0440"}`: `{"a":"пр"}`,
		`["\ud83d\udc4b"]`:     `["👋"]`,
	} {
		if got, want := weigh.JSON(escaped), weigh.JSON(plain); got != want {
			t.Errorf("%s: %+v, %s: %+v", escaped, got, plain, want)
		}
	}
	if got := weigh.JSON(strings.Repeat(" ", 80)); got.Base < 80/weigh.FloorBytes {
		t.Errorf("%+v is below the floor", got)
	}
}
