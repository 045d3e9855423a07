package events

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/testkit/mediatest"
)

// messagesOf are the messages of a body.
func messagesOf(tb testing.TB, body []byte) []codec.Raw {
	tb.Helper()
	var in struct {
		Messages []codec.Raw `json:"messages"`
	}
	if err := codec.Unmarshal(body, &in); err != nil {
		tb.Fatalf("%v: %.200s", err, body)
	}
	return in.Messages
}

// A body of 40 images of 0.9 MB, as after a restart, is read into what a sync takes: the newest
// media are there, and the identity of its messages is the same. One that fits stays as it is.
func TestReadSync(t *testing.T) {
	b := bytes.NewBufferString(`{"session":"s","format":"anthropic","messages":[{"role":"user","content":"Look."}`)
	for i := range 40 {
		data := mediatest.PNG(t, 900_000+i*16)
		fmt.Fprintf(b, `,{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"shot","input":{"data":"","n":[%d,2]}}]}`, i, i)
		fmt.Fprintf(b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":[`+
			`{"type":"text","text":"a \"quoted\" \\ text"},`+
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}]}`,
			i, base64.StdEncoding.EncodeToString(data))
	}
	b.WriteString(`]}`)
	whole := b.Bytes()
	same, err := ReadSync(iotest.HalfReader(bytes.NewReader(whole)), len(whole))
	if err != nil || !bytes.Equal(same, whole) {
		t.Fatalf("%d bytes of %d that fit: %v", len(same), len(whole), err)
	}
	hashed, err := ReadSync(bytes.NewReader(whole), MaxSyncBytes)
	if err != nil || len(hashed) > MaxSyncBytes || len(hashed) < MaxSyncBytes/2 {
		t.Fatalf("%d bytes of %d: %v", len(hashed), len(whole), err)
	}
	was, is := messagesOf(t, whole), messagesOf(t, hashed)
	if Anthropic.DigestOf(was) != Anthropic.DigestOf(is) {
		t.Error("another identity")
	}
	if last := len(was) - 1; !bytes.Equal(was[last], is[last]) || !bytes.Contains(is[2], []byte("sha256:")) {
		t.Error("the oldest media are not those that were replaced")
	}
	text := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("long ", 1<<20) + `"}]}`)
	if _, err := ReadSync(bytes.NewReader(text), 4<<20); CodeOf(err) != CodeTooLarge {
		t.Errorf("a text: %v", err)
	}
}

// For any media in any form, and any bound, a body that is read has the same identity as what was
// sent, or is refused; what is no list of bytes stays as it is.
func TestReadSyncKeepsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Format{OpenAI, Anthropic, Responses, Gemini, Bedrock, AISDK}).Draw(t, "format")
		var list []string
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			data := make([]byte, rapid.SampledFrom([]int{1, 50, 3071, 3072, 3073, 20_000, 70_000}).Draw(t, "bytes"))
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			m := mediatest.In(rapid.SampledFrom(mediatest.Places[string(f)]).Draw(t, "place"), data, rapid.IntRange(0, 2).Draw(t, "form"))
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0:
				m = strings.Replace(m, `{"role"`, `{"x":{"data":{"0":1,"1":"a"},"image":[1,2,300],"bytes":{"type":"Buffer","data":[7,8.5]},"url":"\\\"","result":{}},"role"`, 1)
			case 1:
				m = strings.NewReplacer(`,"`, ", \n\t\"", `":`, `" : `).Replace(m)
			}
			list = append(list, m)
		}
		whole := `{"messages":[` + strings.Join(list, ",") + `]}`
		most := rapid.IntRange(min(200, len(whole)), 2*len(whole)).Draw(t, "most")
		got, err := ReadSync(iotest.OneByteReader(strings.NewReader(whole)), most)
		if err != nil {
			if CodeOf(err) != CodeTooLarge || most > len(whole) {
				t.Fatal(err)
			}
			return
		}
		if len(got) > most || codec.Check(got) != nil {
			t.Fatalf("%d bytes, at most %d", len(got), most)
		}
		var was, is struct {
			Messages []codec.Raw `json:"messages"`
		}
		if codec.Unmarshal([]byte(whole), &was) != nil || codec.Unmarshal(got, &is) != nil {
			t.Fatalf("no JSON: %.300s", got)
		}
		if f.DigestOf(was.Messages) != f.DigestOf(is.Messages) {
			t.Fatalf("another identity:\n%.800s\n%.800s", whole, got)
		}
	})
}

// Whatever a body is, reading it ends, and what fits stays JSON.
func FuzzReadSync(f *testing.F) {
	f.Add([]byte(`{"data":{"0":1,"1":2},"image":[1,2],"url":"\\"}`), 100)
	f.Add([]byte(`{"bytes":{"type":"Buffer","data":[1]},"x":"`), 9)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		got, err := ReadSync(bytes.NewReader(b), most)
		if err == nil && len(got) > max(most, 0) {
			t.Errorf("%d bytes of %d", len(got), most)
		}
		if err == nil && codec.Check(b) == nil && codec.Check(got) != nil {
			t.Errorf("%q became %q", b, got)
		}
	})
}
