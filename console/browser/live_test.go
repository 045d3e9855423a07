package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func turn(texts ...string) map[string]any {
	var messages []any
	for i, text := range texts {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	return map[string]any{"messages": messages}
}

// A turn, a compaction by an operator and an end show without a reload.
func TestLive(t *testing.T) {
	s := startWorker(t, "")
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("There are no sessions yet.")
	p.shows("Live")
	s.examples()
	p.shows("5 sessions")

	p.navigate("#/s/default/" + example)
	p.shows("Live")
	before := eval[int](p, `document.querySelectorAll('.gens li').length`)
	p.click("Compact…")
	p.shows("Preview:")
	p.click("Compact")
	p.shows("Done:")
	p.click("Close")
	p.wait(`document.querySelectorAll('.gens li').length > ` + quotedInt(before))
	p.click("Undo last compaction…")
	p.click("Rewind")
	p.wait(`document.querySelector('dialog .outcome')`)
	if text := eval[string](p, `document.querySelector('dialog .outcome').innerText`); !strings.HasPrefix(text, "Done:") {
		t.Fatalf("the rewind: %s", text)
	}
	p.click("Close")
	p.wait(`document.querySelectorAll('.gens li').length > ` + quotedInt(before+1))
	p.click("End…")
	p.click("End session")
	p.shows("Done")
	p.quiet()
}

// While the worker restarts, the page shows so and keeps its content; afterwards it is live again.
func TestReconnect(t *testing.T) {
	s := startWorker(t, "")
	s.send("default", "s1", turn("hi"))
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("Live")
	s.stop()
	p.shows("The worker does not answer.")
	p.shows("s1")
	s.start(strings.TrimPrefix(s.nats, "nats://"), strings.TrimPrefix(s.url, "http://"))
	p.wait(`!document.querySelector('.banner')`)
	p.shows("Live")
	s.send("default", "s2", turn("hi"))
	p.shows("s2")
	p.quiet("ERR_", "Failed to load resource")
}

// Without a token and with a wrong one the page shows a form and no data; the right one stays in
// the tab.
func TestTokens(t *testing.T) {
	const token = "0123456789abcdef"
	s := startWorker(t, token)
	s.send("default", "s1", turn("hi"))
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("Token required")
	axe := axeSource(t)
	p.accessible(axe)
	enter := func(text string) {
		p.do(chromedp.SendKeys(chromedp.CSS("input[name=token]"), text+"\r"))
	}
	enter("fedcba9876543210")
	p.shows("The worker refused this token.")
	p.accessible(axe)
	p.do(chromedp.Clear(chromedp.CSS("input[name=token]")))
	enter(token)
	p.shows("s1")
	p.shows("Live")
	p.navigate("#/fleet")
	p.shows("1 worker serves")
	p.quiet("401")
	other := open(t, s.url, "#/sessions", desktop)
	other.shows("Token required")
}

// A worker with other outcomes than those that the page has seen answers 410: the page reads all again, and goes on.
func TestGone(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("5 sessions")
	s.send("default", "s1", turn("hi"))
	p.shows("6 sessions")
	s.stop()
	if err := os.RemoveAll(s.data); err != nil {
		t.Fatal(err)
	}
	s.start(strings.TrimPrefix(s.nats, "nats://"), strings.TrimPrefix(s.url, "http://"))
	p.shows("There are no sessions yet.")
	p.shows("Live")
	s.send("default", "s2", turn("hi"))
	p.shows("1 session")
	p.quiet("ERR_", "Failed to load resource")
}

// How long a compaction takes to show once it is decided. It is printed: a machine may be busy.
func TestLatency(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example, desktop)
	p.shows("Live")
	p.wait(`document.querySelector('.gens li')`)
	ms := eval[float64](p, `(async () => {
		const count = () => document.querySelectorAll('.gens li').length, before = count()
		const shown = new Promise(done => new MutationObserver((_, o) => {
			if (count() > before) { o.disconnect(); done(performance.now()) }
		}).observe(document.querySelector('main'), {childList: true, subtree: true}))
		const answer = await fetch('/v1/sessions/default/`+example+`/compact?wait_ms=8000', {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}})
		await answer.text()
		const decided = performance.now()
		return (await shown) - decided
	})()`)
	fmt.Printf("console: a compaction shows %.0f ms after the answer that it is decided\n", ms)
	p.quiet()
}
