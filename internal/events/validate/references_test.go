package validate

import (
	"strings"
	"testing"
)

// A hash in what a tool takes or gives is the tool's own.
func TestHashOfATool(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0f", 32)
	for format, history := range map[string][]string{
		anthropic: {
			`{"role":"user","content":"` + hash + `"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"docker","input":{"image":"` + hash + `","data":["` + hash + `"]}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"` + hash + `"}]}`,
		},
		aiSDK: {
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"docker","input":{"image":"` + hash + `"}}]}`,
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"docker","output":{"type":"json","value":{"image":"` + hash + `"}}}]}`,
		},
		openai: {`{"role":"user","content":[{"type":"text","text":"` + hash + `"}]}`},
	} {
		if got := Messages(format, raws(history)); len(got) > 0 {
			t.Errorf("%s: %v", format, got)
		}
	}
}

// A reference to media is no content of any provider.
func init() {
	ref := "sha256:" + strings.Repeat("0f", 32)
	for format, message := range map[string]string{
		anthropic: `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"REF"}}]}`,
		openai:    `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,REF;bytes=7"}}]}`,
		responses: `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,REF"}]}`,
		gemini:    `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"REF"}}]}`,
		bedrock:   `{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"REF;width=1;height=1"}}}]}`,
		aiSDK:     `{"role":"user","content":[{"type":"image","image":"REF"}]}`,
	} {
		text := strings.Replace(message, "REF", ref, 1)
		plants[format] = append(plants[format], planted{"a reference", []string{text}, []string{mediaByHash}})
		valid[format]["words about a hash"] = []string{strings.Replace(message, "REF", "U0hBMjU2OnNoYTI1Njo=", 1)}
	}
}
