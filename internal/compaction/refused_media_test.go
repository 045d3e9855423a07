package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
)

// D2: a provider that takes fewer images than the session has, whatever is known of its limit,
// is answered with the oldest cleared; the newest image and every word stay, and nothing is
// learnt of the window.
func TestRefusedMedia(t *testing.T) {
	a := newAgent(t, defaultConfig(t))
	form := mediaForms[events.Anthropic]
	image := fmt.Sprintf(form.image, picture(t, 20, 10))
	publish := func(n int) {
		t.Helper()
		blocks := fmt.Sprintf(form.text, fmt.Sprintf("Look at number %d.", n)) + "," + image
		outs := a.publish(object{
			"turn": n, "format": events.Anthropic, "generation": a.ledger.Generation(),
			"messages": append([]codec.Raw{codec.Raw(fmt.Sprintf(form.message, blocks))},
				messages(events.Anthropic, msg{role: dialect.RoleAssistant, text: fmt.Sprintf("I see %d.", n)})...),
			"model": object{"provider": "acme", "name": "sight-1", "context_window": 200_000},
		})
		for _, o := range outs {
			if body, ok := o.Body.(*events.Compacted); ok {
				t.Fatalf("turn %d: %+v", n, body)
			}
		}
	}
	refuse := func(text string, generation int64) *events.Compacted {
		t.Helper()
		a.seq++
		payload := fmt.Sprintf(`{"v":1,"id":"o%d","status":400,"generation":%d,"error":%q}`, a.seq, generation, text)
		in, err := stored.ReadRequest(events.KindOverflow, []byte(payload), a.seq)
		if err != nil {
			t.Fatal(err)
		}
		outs, next := compaction.Decide(a.ledger, in, a.config)
		next.Install(a.ledger)
		body, ok := outs[0].Body.(*events.Compacted)
		if !ok || len(outs) != 1 {
			t.Fatalf("%s: %+v", text, outs)
		}
		return body
	}
	images := func() (n int) {
		t.Helper()
		view := a.ledger.View()
		raw, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		if bad := validate.Messages(events.Anthropic, raw); len(bad) > 0 {
			t.Fatal(bad)
		}
		all := whole(raw)
		for k := int64(1); k <= a.ledger.LastTurn(); k++ {
			if !strings.Contains(all, fmt.Sprintf("Look at number %d.", k)) {
				t.Fatalf("the words of %d are gone", k)
			}
		}
		if !strings.Contains(whole(raw[len(raw)-2:]), image) || strings.LastIndex(all, " cleared]") > strings.Index(all, image) {
			t.Fatal("a newer image was cleared before an older one")
		}
		return strings.Count(all, image)
	}
	for n := range 60 {
		publish(n + 1)
	}
	available := a.ledger.Budget().AvailableInput
	for _, c := range []struct {
		text       string
		generation int64
		left       int
		code       events.Code
	}{
		{"Too much media: 0 document pages + 60 images > 50", 0, 38, ""},
		{"Too much media: 0 document pages + 60 images > 50", 0, 38, events.CodeNewerGeneration},
		{"too many images and documents: 38 + 0 > 20", 1, 15, ""},
		{"Too many images in the request", 2, 11, ""}, // one below 15, and a quarter of that free
		{"Too many images in the request: the maximum is 50", 3, 8, ""},
	} {
		body := refuse(c.text, c.generation)
		if got := images(); got != c.left || body.Code != c.code || body.Compacted != (c.code == "") || body.Reason != events.ReasonOverflow {
			t.Errorf("%s: %d images are left, code %q, compacted %t for %s; want %d, %q", c.text, got, body.Code, body.Compacted, body.Reason, c.left, c.code)
		}
		if got := a.ledger.Budget().AvailableInput; got != available {
			t.Errorf("%s: %d tokens are available, %d before", c.text, got, available)
		}
	}
}
