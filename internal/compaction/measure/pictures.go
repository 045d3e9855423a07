package measure

import (
	"compactd/internal/events/media"
	"compactd/internal/events/models"
)

// pictures are the rules by which a family of models counts images and documents.
type pictures struct {
	// An image is made smaller, keeping its proportions, until its long side is at most maxSide and its short
	// side at most maxShort; 0 is no bound. Then it is divided into squares of this side. With maxSquares it
	// is made smaller still, until it has at most so many.
	maxSide, maxShort, square, maxSquares int64

	base, perSquare, percent Tokens // base + squares × perSquare × percent / 100
	page                     Tokens // of a document
}

// How families count. Sources, read on 2026-11-23:
//   - claude: platform.claude.com/docs/en/build-with-claude/vision (squares of 28 pixels; 2,576
//     pixels and 4,784 squares since Opus 4.7, else 1,568 of both). The cost of one beside its
//     squares, and that of a page, are measured: 2,768 and 1,625 for 1920×1080, 2,347 and 2,115
//     for a page of text (count_tokens of Claude 5.5 and Haiku 4.5).
//   - gemini: ai.google.dev/gemini-api/docs/media-resolution (Gemini 3: at most 1,120 for an
//     image, 560 for a page; measured 1,101 for 1920×1080, 561 for a page) and /docs/tokens
//     (before: 258 for each 768×768, and for a page).
//   - gpt: developers.openai.com/api/docs/guides/images-vision (detail high). A page is text
//     and a picture: 2,000 is a cautious guess, nothing is published.
var (
	claudeFine   = pictures{maxSide: 2576, square: 28, maxSquares: 4784, base: 77, perSquare: 1, percent: 100, page: 2347}
	claudeCoarse = pictures{maxSide: 1568, square: 28, maxSquares: 1568, base: 65, perSquare: 1, percent: 100, page: 2115}
	gemini3      = pictures{maxSquares: 1120, base: 1, perSquare: 1, percent: 100, page: 561}
	gemini2      = pictures{maxSide: 3072, square: 768, perSquare: 258, percent: 100, page: 259}
	gptPatches   = pictures{maxSide: 2048, square: 32, maxSquares: 2500, perSquare: 1, percent: 120, page: gptPage}
	gptMini      = pictures{square: 32, maxSquares: 1536, perSquare: 1, percent: 162, page: gptPage}
	gptNano      = pictures{square: 32, maxSquares: 1536, perSquare: 1, percent: 246, page: gptPage}
	gptTiles     = pictures{maxSide: 2048, maxShort: 768, square: 512, base: 85, perSquare: 170, percent: 100, page: gptPage}
	gpt5Tiles    = pictures{maxSide: 2048, maxShort: 768, square: 512, base: 70, perSquare: 140, percent: 100, page: gptPage}
	gpt4oMini    = pictures{maxSide: 2048, maxShort: 768, square: 512, base: 2833, perSquare: 5667, percent: 100, page: gptPage}
	oTiles       = pictures{maxSide: 2048, maxShort: 768, square: 512, base: 75, perSquare: 150, percent: 100, page: gptPage}
)

const gptPage = 2000

// picturesBy are the rules of models: by maker and the beginning of a name, the longest that fits. A model of
// these makers that is not listed counts like one of the newest.
var picturesBy = map[string]map[string]*pictures{
	"anthropic": {
		"": &claudeFine, "claude-2": &claudeCoarse, "claude-3": &claudeCoarse, "claude-haiku-4": &claudeCoarse, "claude-sonnet-4": &claudeCoarse,
		"claude-opus-4": &claudeCoarse, "claude-opus-4-7": &claudeFine, "claude-opus-4-8": &claudeFine,
	},
	"google-ai": {"": &gemini3, "gemini-1": &gemini2, "gemini-2": &gemini2, "gemma": &gemini2},
	"openai": {
		"": &gptPatches, "gpt-4": &gptTiles, "chatgpt-4o": &gptTiles, "gpt-4o-mini": &gpt4oMini, "gpt-4.1-mini": &gptMini, "gpt-4.1-nano": &gptNano,
		"gpt-5": &gpt5Tiles, "gpt-5-mini": &gptMini, "gpt-5-nano": &gptNano, "gpt-5.1": &gpt5Tiles,
		"gpt-5.2": &gptPatches, "gpt-5.3": &gptPatches, "gpt-5.4": &gptPatches, "gpt-5.5": &gptPatches, "gpt-5.6": &gptPatches,
		"o1": &oTiles, "o3": &oTiles, "o4-mini": &gptMini,
	},
}

// picturesOf returns a model's rules on any provider; nil if its maker's are unknown.
func picturesOf(model string) *pictures {
	table := picturesBy[models.Maker(model)]
	if p := table[longest(table, models.Canonical(model))]; p != nil {
		return p
	}
	return table[""]
}

// unknownPage is the cost of a page for an unknown model.
const unknownPage Tokens = 2000

// media estimates the images and documents of an entry. PerImage is the cost of one of unknown size, of any
// under a profile without classes, and of any image for a model with unknown rules.
func (r *Rate) media(e *Entry) Tokens {
	n := Tokens(e.Images)
	shape := e.Media()
	if !r.Classes || !shape.Known() {
		return n * r.PerImage
	}
	var t Tokens
	page := unknownPage
	if r.pictures != nil {
		page = r.pictures.page
	}
	if t = Tokens(shape.Pages) * page; t > 0 {
		n -= Tokens(e.Documents)
	}
	switch {
	case shape.Width == 0: // only documents
		return t
	case r.pictures == nil:
		return t + n*r.PerImage
	default:
		return t + n*r.pictures.image(shape)
	}
}

// image is the cost of an image.
func (p *pictures) image(s media.Shape) Tokens {
	w, h := int64(s.Width), int64(s.Height)
	if p.square == 0 { // as many squares as the proportions of the image allow
		across := min(max(root(p.maxSquares*w/h), 1), p.maxSquares)
		return p.base + Tokens(across*max(min(root(p.maxSquares*h/w), p.maxSquares/across), 1))*p.perSquare
	}
	if long := max(w, h); p.maxSide > 0 && long > p.maxSide {
		w, h = max(w*p.maxSide/long, 1), max(h*p.maxSide/long, 1)
	}
	if short := min(w, h); p.maxShort > 0 && short > p.maxShort {
		w, h = w*p.maxShort/short, h*p.maxShort/short
	}
	squares := CeilDiv(w, p.square) * CeilDiv(h, p.square)
	if p.maxSquares > 0 && squares > p.maxSquares {
		squares = p.fit(w, h)
	}
	return p.base + Tokens(CeilDiv(squares*int64(p.perSquare)*int64(p.percent), 100))
}

// fit is the number of squares of an image that is reduced to maxSquares in its proportions.
func (p *pictures) fit(w, h int64) int64 {
	lo, hi := int64(1), max(w, h) // the long side
	count := func(long int64) int64 {
		return CeilDiv(max(w*long/max(w, h), 1), p.square) * CeilDiv(max(h*long/max(w, h), 1), p.square)
	}
	for lo < hi {
		if mid := (lo + hi + 1) / 2; count(mid) <= p.maxSquares {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return count(lo)
}

// root is the square root, rounded down.
func root(n int64) (r int64) {
	for bit := int64(1) << 31; bit > 0; bit >>= 1 {
		if r+bit <= n/(r+bit) {
			r += bit
		}
	}
	return r
}
