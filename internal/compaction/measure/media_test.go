package measure_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// An image counts by its dimensions in every dialect, wherever it is, and a PDF by its
// pages. Base64 is never text.
func TestMediaCountBySize(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1920, 1080))); err != nil {
		t.Fatal(err)
	}
	picture := base64.StdEncoding.EncodeToString(append(b.Bytes(), make([]byte, 400_000)...))
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n1 0 obj\n<</Type/Pages/Kids[2 0 R]/Count 100>>\nendobj\n" + strings.Repeat("% more\n", 100)))
	for name, c := range map[string]struct {
		format          events.Format
		provider, model string
		message         string
		want            measure.Tokens // beside framing
	}{
		"openai":           {events.OpenAI, "openai", "gpt-6", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,IMAGE"}}]}`, 2448},
		"openai file":      {events.OpenAI, "openai", "gpt-6", `{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,PDF"}}]}`, 200_000},
		"responses":        {events.Responses, "openai", "gpt-6", `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,IMAGE"}]}`, 2448},
		"responses output": {events.Responses, "openai", "gpt-6", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,IMAGE"}]}`, 2448},
		"responses screen": {events.Responses, "openai", "gpt-6", `{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,IMAGE"}}`, 2448},
		"responses made":   {events.Responses, "openai", "gpt-6", `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"IMAGE"}`, 2448},
		"anthropic":        {events.Anthropic, "anthropic", "claude-opus-5.5", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"IMAGE"}}]}`, 2768},
		"anthropic haiku":  {events.Anthropic, "anthropic", "claude-haiku-4-5", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"IMAGE"}}]}`, 1625},
		"anthropic result": {
			events.Anthropic, "anthropic", "claude-opus-5.5",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[` +
				`{"type":"image","source":{"type":"base64","data":"IMAGE"}},{"type":"image","source":{"type":"base64","data":"IMAGE"}}]}]}`, 2 * 2768,
		},
		"anthropic pdf": {
			events.Anthropic, "anthropic", "claude-opus-5.5",
			`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"PDF"}}]}`, 234_700,
		},
		"anthropic url": {events.Anthropic, "anthropic", "claude-opus-5.5", `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}`, 1024},
		"gemini":        {events.Gemini, "google-ai", "gemini-3-pro", `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"IMAGE"}}]}`, 1101},
		"gemini pdf":    {events.Gemini, "google-ai", "gemini-3-pro", `{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"PDF"}}]}`, 56_100},
		"gemini response": {
			events.Gemini, "google-ai", "gemini-3-pro",
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":""},"parts":[{"inlineData":{"mimeType":"image/png","data":"IMAGE"}}]}}]}`, 1101,
		},
		"bedrock": {events.Bedrock, "bedrock", "anthropic.claude-opus-5-5", `{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"IMAGE"}}}]}`, 2768},
		"bedrock result": {
			events.Bedrock, "bedrock", "anthropic.claude-opus-5-5",
			`{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"image":{"format":"png","source":{"bytes":"IMAGE"}}}]}}]}`, 2768,
		},
		"ai-sdk": {events.AISDK, "openai", "gpt-6", `{"role":"user","content":[{"type":"image","image":"IMAGE"}]}`, 2448},
		"ai-sdk result": {
			events.AISDK, "openai", "gpt-6",
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"content","value":[` +
				`{"type":"media","data":"IMAGE","mediaType":"image/png"}]}}]}`, 2448,
		},
		"ai-sdk pdf": {events.AISDK, "anthropic", "claude-haiku-4-5", `{"role":"user","content":[{"type":"file","mediaType":"application/pdf","data":"PDF"}]}`, 211_500},
	} {
		m, err := c.format.Read(codec.Raw(strings.NewReplacer("IMAGE", picture, "PDF", pdf).Replace(c.message)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := measure.RateOf(measure.Profiles["default"], c.provider, c.model)
		var got measure.Tokens
		for _, e := range measure.Measure(m, measure.Entry{}) {
			got += r.Body(&e)
		}
		if got < c.want || got > c.want+r.PerTool {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}
