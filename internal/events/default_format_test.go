package events

import (
	"strings"
	"testing"
)

// E3: a default that does not fit is never a misreading. Clients of Google and Bedrock who name
// no format are taken as most of them send; the other dialect of their provider is refused by
// name, with the format to declare.
func TestDefaultFormatRefusesByName(t *testing.T) {
	for _, c := range []struct{ provider, messages, declare string }{
		{"google", `[{"role":"user","content":"hello"}]`, ""},
		{"google", `[{"role":"user","parts":[{"text":"hello"}]}]`, "gemini"},
		{"Vertex AI", `[{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]}]`, "gemini"},
		{"bedrock", `[{"role":"user","content":[{"type":"text","text":"hello"}]}]`, ""},
		{"amazon-bedrock", `[{"role":"user","content":[{"text":"hello"}]}]`, "bedrock"},
		{"bedrock", `[{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"read","input":{}}}]}]`, "bedrock"},
	} {
		in, err := new(Decoder).Turn([]byte(`{"turn":1,"model":{"provider":"`+c.provider+`","name":"m"},"messages":`+c.messages+`}`), "")
		if err == nil {
			err = in.Fault
		}
		switch {
		case c.declare == "":
			if err != nil {
				t.Errorf("%s %s: %v", c.provider, c.messages, err)
			}
		case err == nil || CodeOf(err) != CodeForeignDialect || !strings.Contains(err.Error(), "set format to "+c.declare):
			t.Errorf("%s %s: %v, want %s by name", c.provider, c.messages, err, c.declare)
		}
	}
}
