package validate

import "strings"

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
