package media_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
)

// forms are the forms in which the same bytes come, by name.
func forms(t testing.TB, data []byte) map[string]codec.Raw {
	t.Helper()
	numbers := strings.Fields(strings.Trim(fmt.Sprint(data), "[]"))
	indexed := make([]string, len(numbers))
	for i, n := range numbers {
		indexed[i] = fmt.Sprintf("%q: %s", fmt.Sprint(i), n)
	}
	std := base64.StdEncoding.EncodeToString(data)
	lines := std[:40] + "\n" + std[40:]
	quoted, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]codec.Raw{
		"base64":        codec.Quote(std),
		"no padding":    codec.Quote(strings.TrimRight(std, "=")),
		"url alphabet":  codec.Quote(base64.URLEncoding.EncodeToString(data)),
		"lines":         quoted,
		"Uint8Array":    codec.Raw("{" + strings.Join(indexed, ",") + "}"),
		"indented":      codec.Raw("{\n    " + strings.Join(indexed, ",\n    ") + "\n}"),
		"Buffer":        codec.Raw(`{"type":"Buffer","data":[` + strings.Join(numbers, ",") + `]}`),
		"list":          codec.Raw(`[` + strings.Join(numbers, ", ") + `]`),
		"escaped":       codec.Raw(strings.ReplaceAll(string(codec.Quote(std)), "/", `\/`)),
		"list in space": codec.Raw("[ " + strings.Join(numbers, "\n,\t") + " ]"),
	}
}

// wav is a sound of some seconds.
func wav(seconds int) []byte {
	b := append([]byte("RIFF....WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"), make([]byte, 20)...)
	binary.LittleEndian.PutUint32(b[28:], 16_000)
	return append(b, make([]byte, 16_000*seconds)...)
}

// A reference has all that a price needs, whatever form the media came in.
func TestRefer(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want media.Ref
		text string
	}{
		"png": {picture(t, "png", 1920, 1080), media.Ref{Type: "image/png", Shape: media.Shape{Width: 1920, Height: 1080}}, "[image 1920x1080, "},
		"pdf": {pdf(7, 10), media.Ref{Type: "application/pdf", Shape: media.Shape{Pages: 7}}, "[document of 7 pages, "},
		"wav": {wav(3), media.Ref{Type: "audio/wav", Seconds: 3}, "[audio of 3 s, 0.1 MB, kept by hash sha256:"},
		"raw": {bytes.Repeat([]byte{0xfb, 0xef, 0xff}, 99), media.Ref{}, "[file, "},
	} {
		var first codec.Raw
		for form, raw := range forms(t, c.data) {
			ref, ok := media.Refer(raw)
			if first == nil {
				first = ref
			}
			if !ok || string(ref) != string(first) {
				t.Errorf("%s as %s: %s, want %s", name, form, ref, first)
			}
			if form == "lines" || form == "url alphabet" && c.want.Width == 0 {
				continue // what is behind a line break is not read
			}
			if a, b := media.Of(raw), media.Of(ref); a != b {
				t.Errorf("%s as %s has the shape %v, its reference %v", name, form, a, b)
			}
		}
		got, ok := media.RefOf(first)
		c.want.Hash, c.want.Bytes = got.Hash, int64(len(c.data))
		if !ok || got != c.want || !strings.HasPrefix(got.Text(), c.text) {
			t.Errorf("%s: %+v, want %+v: %s", name, got, c.want, got.Text())
		}
		if _, ok := media.Refer(first); ok {
			t.Errorf("%s: a reference to a reference", name)
		}
		url := codec.Quote("data:image/png;base64," + base64.StdEncoding.EncodeToString(c.data))
		if ref, ok := media.Refer(url); !ok || string(ref) != `"data:image/png;base64,`+string(first[1:]) {
			t.Errorf("%s: %s", name, ref)
		}
	}
	for _, none := range []string{
		`"https://example.com/a.png"`, `"words, words"`, `{}`, `[]`, `{"0":256}`, `{"0":1,"2":2}`,
		`{"type":"Buffer","data":[1.5]}`, `[1,"2"]`, `null`, `""`, `"data:text/plain,abc"`,
	} {
		if ref, ok := media.Refer(codec.Raw(none)); ok {
			t.Errorf("%s: %s", none, ref)
		}
	}
}
