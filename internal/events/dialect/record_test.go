package dialect_test

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/mediatest"
)

// placed is a message with media in its place.
func placed(place string, data []byte, form int) codec.Raw {
	return codec.Raw(mediatest.In(place, data, form))
}

// answered puts the call of a result before it.
func answered(f Format, m codec.Raw) []codec.Raw {
	head := map[Format][]string{
		Anthropic: {`{"role":"user","content":"x"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`},
		Responses: {`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`},
		Gemini:    {`{"role":"user","parts":[{"text":"x"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"n","args":{}}}]}`},
		Bedrock:   {`{"role":"user","content":[{"text":"x"}]}`, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"n","input":{}}}]}`},
		AISDK:     {`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"n","input":{}}]}`},
	}[f]
	if bytes.Contains(m, []byte("computer_call_output")) {
		head = []string{`{"type":"computer_call","id":"cu_1","call_id":"c1","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"}`}
	}
	read, err := f.Read(m)
	if err != nil || len(read.Parts) == 0 || read.Parts[0].Kind != PartResult {
		head = nil
	}
	var out []codec.Raw
	for _, s := range head {
		out = append(out, codec.Raw(s))
	}
	return append(out, m)
}

// A message whose media are recorded by a reference has the same identity, and its media the
// same price: in every place of every dialect, also an image of 5.5 MB. A provider takes it with a
// placeholder.
func TestRecordedMedia(t *testing.T) {
	large, small := mediatest.PNG(t, 5_500_000), mediatest.PNG(t, 300_000)
	for name, places := range mediatest.Places {
		f := Format(name)
		for i, place := range places {
			for form := range mediatest.Forms {
				if form == 0 || strings.Contains(place, ":J") {
					wantRecorded(t, f, placed(place, small, form), placed(place, small, 0))
				}
			}
			if i == 0 {
				wantRecorded(t, f, placed(place, large, 0), placed(place, large, 0))
			}
		}
	}
}

func wantRecorded(t *testing.T, f Format, m, plain codec.Raw) {
	t.Helper()
	r := f.Record(m, events.MaxTurnBytes)
	name := string(f) + " " + string(r)
	if len(r) > 700 || codec.Check(r) != nil {
		t.Errorf("%s: recorded %d bytes of %d: %.400s", f, len(r), len(m), r)
		return
	}
	for _, other := range []codec.Raw{r, plain, f.Record(plain, events.MaxTurnBytes)} {
		if a, b := f.DigestOf([]codec.Raw{m}), f.DigestOf([]codec.Raw{other}); a != b {
			t.Errorf("%s: digests %s and %s", name, a, b)
		}
	}
	a, err := f.Read(m)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err := f.Read(r)
	if err != nil || len(a.Parts) != len(b.Parts) {
		t.Fatalf("%s: %d parts, %d recorded: %v", name, len(a.Parts), len(b.Parts), err)
	}
	found := false
	for i := range a.Parts {
		p, q := &a.Parts[i], &b.Parts[i]
		if p.Kind != q.Kind || p.Media != q.Media || p.Images != q.Images || p.Papers != q.Papers || p.Text != q.Text {
			t.Errorf("%s: part %d has other media: %v, %v", name, i, p.Media, q.Media)
		}
		found = found || p.Media.Width > 0
	}
	if !found && !strings.Contains(name, `"content":[{"type":"image"`) {
		t.Errorf("%s: no media were found", name)
	}
	if bad := validate.Messages(f, answered(f, r)); len(bad) != 1 || bad[0].Rule != "media_by_hash" {
		t.Errorf("%s: %v", name, bad)
	}
	s := f.Sendable(r)
	if bad := validate.Messages(f, answered(f, s)); len(bad) > 0 {
		t.Errorf("%s is sent as %s: %v", name, s, bad)
	}
	held := bytes.Contains(s, []byte("kept by hash sha256:")) || bytes.Contains(s, []byte("a2VwdCBieSBoYXNo")) || bytes.Contains(s, []byte("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"))
	if again := f.Sendable(s); string(again) != string(s) || !held && !bytes.Contains(s, []byte("text/plain")) {
		t.Errorf("%s is sent as %s", name, s)
	}
	if other := f.Sendable(m); !bytes.Equal(other, m) {
		t.Errorf("%s: media that are there were replaced", name)
	}
}

// Of a message that is too large with small media alone, the largest are recorded by a
// reference, until it fits; the others stay, and so does all that is no media.
func TestRecordedSmallMedia(t *testing.T) {
	var blocks []string
	for i := range 30 {
		blocks = append(blocks, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+base64.StdEncoding.EncodeToString(mediatest.PNG(t, 100_000+3_000*i))+`"}}`)
	}
	m := codec.Raw(`{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("sha256:words ", 20_000) + `"},` + strings.Join(blocks, ",") + `]}`)
	if r := Anthropic.Record(m, len(m)); string(r) != string(m) {
		t.Errorf("a message that fits was changed: %d bytes of %d", len(r), len(m))
	}
	r := Anthropic.Record(m, events.MaxTurnBytes)
	n := bytes.Count(r, []byte(`"sha256:`))
	if len(r) > events.MaxTurnBytes || len(r) < events.MaxTurnBytes-300_000 || n == 0 || n == len(blocks) || !bytes.Contains(r, []byte(blocks[0])) || bytes.Contains(r, []byte(blocks[29])) {
		t.Errorf("%d bytes with %d of %d by hash", len(r), n, len(blocks))
	}
	if Anthropic.DigestOf([]codec.Raw{m}) != Anthropic.DigestOf([]codec.Raw{r}) {
		t.Error("it has another identity")
	}
}

// For any messages, media and bounds, the identity of what is recorded is that of the messages,
// and folding them makes them small enough where media alone are too large.
func TestRecordKeepsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Format{OpenAI, Anthropic, Responses, Gemini, Bedrock, AISDK}).Draw(t, "format")
		var messages, recorded []codec.Raw
		most := rapid.IntRange(1, 60_000).Draw(t, "most")
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			data := make([]byte, rapid.IntRange(1, 30_000).Draw(t, "bytes"))
			seed := rapid.Uint64().Draw(t, "seed")
			rng := rand.New(rand.NewPCG(seed, 0))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			m := placed(rapid.SampledFrom(mediatest.Places[string(f)]).Draw(t, "place"), data, rapid.IntRange(0, 2).Draw(t, "form"))
			messages, recorded = append(messages, m), append(recorded, f.Record(m, most))
		}
		hashed := f.Fold(messages, most)
		for _, other := range [][]codec.Raw{recorded, hashed} {
			if f.DigestOf(messages) != f.DigestOf(other) {
				t.Fatalf("%s, at most %d: another identity", f, most)
			}
		}
	})
}
