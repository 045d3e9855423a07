package measure

import (
	"testing"

	"compactd/internal/events/media"
)

// Sizes that providers publish, and sizes that were measured.
func TestPictures(t *testing.T) {
	screen, square, page := media.Shape{Width: 1920, Height: 1080}, media.Shape{Width: 1000, Height: 1000}, media.Shape{Pages: 1}
	for _, c := range []struct {
		provider, model string
		shape           media.Shape
		want            Tokens
	}{
		{"anthropic", "claude-opus-5.5", screen, 2768},
		{"bedrock", "us.anthropic.claude-opus-5-5-v1:0", screen, 2768},
		{"anthropic", "claude-haiku-4-5", screen, 1625},
		{"anthropic", "claude-opus-4-6", media.Shape{Width: 3840, Height: 2160}, 1625},
		{"google-ai", "gemini-3-pro", screen, 1101},
		{"vertex", "gemini-3.8-flash", media.Shape{Width: 64, Height: 64}, 1090},
		{"google-ai", "gemini-2.5-flash", media.Shape{Width: 300, Height: 300}, 258},
		{"openai", "gpt-6.2-sol", screen, 2448},
		{"azure", "gpt-6", media.Shape{Width: 1, Height: 1}, 2},
		{"openai", "gpt-4o", screen, 1105},
		{"openai", "gpt-4o", square, 765},
		{"openai", "gpt-5", square, 630},
		{"openai", "gpt-5-mini", square, 1659},
		{"openrouter", "anthropic/claude-opus-5.5", page, 2347},
		{"anthropic", "claude-haiku-4-5", page, 2115},
		{"google-ai", "gemini-3-pro", page, 561},
		{"groq", "llama-4", screen, 1024},
		{"anthropic", "claude-opus-5.5", media.Shape{}, 1024},
		{"anthropic", "claude-opus-5.5", media.Shape{Pages: 100}, 234_700},
	} {
		e := Entry{Kind: KindWords, Role: RoleUser}
		e.setMedia(1, 0, c.shape)
		r := RateOf(Profiles["default"], c.provider, c.model)
		if got := r.Body(&e); got != c.want {
			t.Errorf("%s %s %v: %d, want %d", c.provider, c.model, c.shape, got, c.want)
		}
		for _, profile := range []string{"seed", "current", "blocks"} {
			if r := RateOf(Profiles[profile], c.provider, c.model); r.Body(&e) != r.PerImage {
				t.Errorf("%s: %d", profile, r.Body(&e))
			}
		}
	}
}

// An image costs no less than a smaller one, and never more than a model's bound.
func TestPicturesAreBounded(t *testing.T) {
	for name, most := range map[string]Tokens{"claude-opus-5.5": 4784 + 77, "claude-haiku-4-5": 1568 + 65, "gemini-3-pro": 1121, "gpt-6": 3000, "gpt-5": 70 + 8*140} {
		p := picturesOf(name)
		for _, w := range []uint16{1, 27, 28, 29, 500, 1568, 2577, 9000, 65535} {
			for _, h := range []uint16{1, 28, 700, 2577, 65535} {
				if got := p.image(media.Shape{Width: w, Height: h}); got < 1 || got > most {
					t.Errorf("%s %d×%d: %d, want at most %d", name, w, h, got, most)
				}
			}
		}
	}
}
