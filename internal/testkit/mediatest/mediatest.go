package mediatest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

// Places are messages of each dialect, by its name, with a place for media: B is base64, J the
// bytes as JSON of JavaScript has them, where the dialect has them so.
var Places = map[string][]string{
	"openai": {
		`{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:image/png;base64,B","detail":"low"}}]}`,
		`{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,B"}}]}`,
		`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"B","format":"wav"}}]}`,
	},
	"anthropic": {
		`{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"B"},"cache_control":{"type":"ephemeral"}}]}`,
		`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"B"}}]}`,
		`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"B"}}]}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"done"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"B"}}]}]}`,
	},
	"openai-responses": {
		`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,B","detail":"high"}]}`,
		`{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,B"}]}`,
		`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"B","format":"wav"}}]}`,
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/png;base64,B"}]}`,
		`{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,B"}}`,
		`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"B"}`,
	},
	"gemini": {
		`{"role":"user","parts":[{"text":"Look."},{"inlineData":{"mimeType":"image/png","data":"B"}}]}`,
		`{"role":"user","parts":[{"inline_data":{"mime_type":"application/pdf","data":"B"}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"done"},"parts":[{"inlineData":{"mimeType":"image/png","data":"B"}}]}}]}`,
		`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":J}}]}`,
	},
	"bedrock": {
		`{"role":"user","content":[{"text":"Look."},{"image":{"format":"png","source":{"bytes":"B"}}}]}`,
		`{"role":"user","content":[{"text":"Look."},{"document":{"format":"pdf","name":"a","source":{"bytes":J}}}]}`,
		`{"role":"user","content":[{"audio":{"format":"wav","source":{"bytes":"B"}}}]}`,
		`{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"image":{"format":"png","source":{"bytes":J}}}]}}]}`,
	},
	"ai-sdk": {
		`{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image","image":"B"}]}`,
		`{"role":"user","content":[{"type":"image","image":J,"mediaType":"image/png"}]}`,
		`{"role":"user","content":[{"type":"file","data":J,"mediaType":"application/pdf","filename":"a.pdf"}]}`,
		`{"role":"user","content":[{"type":"file","data":"data:audio/wav;base64,B","mediaType":"audio/wav"}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"n","output":{"type":"content","value":[{"type":"text","text":"done"},{"type":"media","data":"B","mediaType":"image/png"}]}}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"n","output":{"type":"content","value":[{"type":"image-url","url":"data:image/png;base64,B"}]}}]}`,
	},
}

// Forms is how many forms the bytes of a J have: base64, a Uint8Array and a Buffer.
const Forms = 3

// bytesAsJSON are the forms of bytes that are no string.
var bytesAsJSON = []func(data []byte) string{
	func(data []byte) string { return `"` + base64.StdEncoding.EncodeToString(data) + `"` },
	func(data []byte) string {
		var b strings.Builder
		for i, c := range data {
			fmt.Fprintf(&b, `,"%d":%d`, i, c)
		}
		return "{" + b.String()[1:] + "}"
	},
	func(data []byte) string {
		return `{"type":"Buffer","data":` + strings.ReplaceAll(fmt.Sprint(data), " ", ",") + `}`
	},
}

// In is a message with media in its place, the bytes as JSON in one of their forms.
func In(place string, data []byte, form int) string {
	text := base64.StdEncoding.EncodeToString(data)
	if strings.Contains(place, ":J") {
		return strings.Replace(place, ":J", ":"+bytesAsJSON[form%Forms](data), 1)
	}
	return strings.NewReplacer(`"B"`, `"`+text+`"`, `base64,B"`, `base64,`+text+`"`).Replace(place)
}

// PNG is a picture of about so many bytes: of random pixels.
func PNG(tb testing.TB, size int) []byte {
	tb.Helper()
	side := 16
	for side*side < size {
		side += 16
	}
	rng := rand.New(rand.NewPCG(uint64(size), 1))
	img := image.NewGray(image.Rect(0, 0, side, max(size/side, 1)))
	for i := range img.Pix {
		img.Pix[i] = byte(rng.Uint32())
	}
	img.Set(0, 0, color.White)
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(&b, img); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
