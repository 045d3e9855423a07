package strict

import (
	"encoding/json"
	"strings"
)

// maxMedia is what Claude takes of images in one request: fewer with a window of 200,000 tokens.
func maxMedia(model string) int {
	if strings.Contains(model, "haiku-4-5") || strings.Contains(model, "claude-3") {
		return 100
	}
	return 600
}

// checkMedia counts the images of a call, those inside of results too.
func checkMedia(r *request) {
	n := 0
	for _, m := range r.messages {
		var content any
		if json.Unmarshal(m.Content, &content) == nil {
			n += imagesIn(content)
		}
	}
	if most := maxMedia(r.call.Model); n > most {
		r.refuse(0, "Too much media: 0 document pages + %d images > %d", n, most)
	}
}

func imagesIn(value any) (n int) {
	switch v := value.(type) {
	case []any:
		for _, x := range v {
			n += imagesIn(x)
		}
	case map[string]any:
		if v["type"] == "image" || v["image"] != nil {
			return 1
		}
		n += imagesIn(v["content"])
		if result, ok := v["toolResult"].(map[string]any); ok {
			n += imagesIn(result["content"])
		}
	}
	return n
}
