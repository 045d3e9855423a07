package traits

import "strings"

// Media is how many images and documents a provider takes in one request. 0 sets no bound, and a
// Total below 0 is none.
type Media struct {
	Total     int // images, and pages of documents, together
	Documents int
	// Of more than Many images none may have a side of more than Side pixels.
	Many, Side int
}

// LargeSide is the Side of all rows that have one.
const LargeSide = 2000

// smallWindow is the window from which Claude takes more media.
const smallWindow = 200_000

// Sources, read on 2026-11-23:
//   - claude: platform.claude.com/docs/en/build-with-claude/vision, "General limits": "100 per
//     request on the API, for models with a 200k-token context window. 600 per request on the
//     API, for all other models. The maximal dimensions per image are 8000x8000 px. If you submit
//     more than 20 images in one API request, this limit is reduced to 2000x2000 px." Pages count
//     as images: "Too much media: 0 document pages + 102 images > 100" (anthropics/claude-code
//     issue 19822). The same on all platforms.
//   - bedrock: docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html: "up
//     to 5 documents per request", and no limit of images of its own. The reference of Message
//     states 20 images and 5 documents for one message.
//   - gpt: platform.openai.com/docs/guides/images-vision, "Image input requirements": "Up to 500
//     individual images per request".
//   - gemini: docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding:
//     "Maximum images per prompt: 3,000", for Gemini 3 Pro 900; a page of a PDF is an image. The
//     Gemini API takes 3,600 (ai.google.dev/gemini-api/docs/image-understanding).
const (
	claudeMedia      = 600
	claudeSmallMedia = 100
	claudeMany       = 20
	bedrockDocuments = 5
	gptMedia         = 500
	geminiMedia      = 3000
	gemini3Media     = 900
)

// MediaOf is what a provider takes for a model with a window of so many tokens.
func MediaOf(provider, model string, window int64) (m Media) {
	p, name := squeeze(provider), strings.ToLower(model)
	switch {
	case isClaude(name) || p == "anthropic":
		m = Media{Total: claudeMedia, Many: claudeMany, Side: LargeSide}
		if window <= smallWindow {
			m.Total = claudeSmallMedia
		}
	case strings.Contains(name, "gemini-3-pro"):
		m.Total = gemini3Media
	case strings.Contains(name, "gemini"), strings.HasPrefix(p, "google"), strings.HasPrefix(p, "vertex"), p == "gemini":
		m.Total = geminiMedia
	case strings.Contains(name, "gpt-"), strings.HasPrefix(p, "openai"), strings.HasPrefix(p, "azure"):
		m.Total = gptMedia
	}
	if strings.Contains(p, "bedrock") {
		m.Documents = bedrockDocuments
	}
	return m
}
