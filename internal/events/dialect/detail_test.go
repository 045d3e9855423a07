package dialect_test

import (
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
)

// The detail of an image counts wherever it stands, and no other value than low does.
func TestDetail(t *testing.T) {
	low := media.Shape{Width: 512, Height: 512}
	for _, c := range []struct {
		format  Format
		message string
		want    media.Shape
	}{
		{OpenAI, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/a.png","detail":"low"}}]}`, low},
		{OpenAI, `{"role":"user","content":[{"type":"image_url","image_url":{"detail":"low","url":"https://x/a.png"}}]}`, low},
		{OpenAI, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/a.png","detail":"high"}}]}`, media.Shape{}},
		{OpenAI, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/a.png","detail":7}}]}`, media.Shape{}},
		{Responses, `{"role":"user","content":[{"type":"input_image","detail":"low","image_url":"https://x/a.png"}]}`, low},
		{Responses, `{"role":"user","content":[{"type":"input_image","image_url":"https://x/a.png","detail":"auto"}]}`, media.Shape{}},
		{Responses, `{"role":"user","content":[{"type":"input_text","text":"a","detail":"low"}]}`, media.Shape{}},
	} {
		m, err := c.format.Read(codec.Raw(c.message))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Parts[0].Media; got != c.want {
			t.Errorf("%s: %v, want %v", c.message, got, c.want)
		}
	}
}
