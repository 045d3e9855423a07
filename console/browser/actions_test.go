package browser

import (
	"strings"
	"testing"
)

// Several sessions are compacted and ended together, after a dialog that names them; a refusal is named too, and the
// others are done.
func TestBulk(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	s.send("default", "small", turn("hi"))
	p := open(t, s.url, "#/sessions?sort=name", desktop)
	p.shows("6 sessions")
	pick := func(names ...string) {
		for _, name := range names {
			p.wait(`document.querySelector('[aria-label="Select ` + name + `"]')`)
		}
		eval[bool](p, `(`+list(names)+`.forEach(n => document.querySelector('[aria-label="Select ' + n + '"]').click()), true)`)
	}
	pick(example, "example-rename-flag")
	p.shows("2 sessions selected")
	p.click("Compact…")
	p.wait(`document.querySelector('dialog[open] h2')?.innerText === 'Compact 2 sessions'`)
	for _, name := range []string{example, "example-rename-flag"} {
		p.wait(`document.querySelector('dialog').innerText.includes(` + quoted(name) + `)`)
	}
	p.click("Compact")
	p.wait(`document.querySelector("dialog .outcome")`)
	if got := eval[string](p, `document.querySelector("dialog .outcome").innerText`); got != "2 sessions done." {
		t.Errorf("the dialog shows %q", got)
	}
	p.click("Close")
	p.wait(`!document.querySelector('dialog') && !document.body.innerText.includes('selected')`)

	pick(example, "small")
	p.click("End…")
	p.wait(`document.querySelector('dialog[open]')`)
	s.publish("", "end", "--session", "small") // by its agent, meanwhile
	p.click("End sessions")
	p.wait(`/1 session done, 1 refused. small: /.test(document.querySelector('dialog').innerText)`)
	p.click("Cancel")
	p.shows("4 sessions")
	p.quiet("Failed to load resource")
}

// Export writes the history as the next call sends it, or as it was published, a message a line.
func TestExport(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example, desktop)
	p.shows("Live")
	eval[bool](p, `(URL.createObjectURL = b => { window.saved = b.text(); return 'data:,' }, HTMLAnchorElement.prototype.click = function () { window.file = this.download }, true)`)
	export := func(button string) (file, text string) {
		eval[bool](p, `(window.file = undefined, true)`)
		p.wait(`[...document.querySelectorAll('.head button')].some(b => b.innerText === ` + quoted(button) + `)`)
		eval[bool](p, `([...document.querySelectorAll('.head button')].find(b => b.innerText === `+quoted(button)+`).dispatchEvent(new MouseEvent('click', {bubbles: true})), true)`)
		p.wait(`window.file`)
		return eval[string](p, `window.file`), eval[string](p, `window.saved`)
	}
	file, now := export("Export")
	if file != example+".jsonl" || !strings.Contains(now, "[Tool result cleared]") {
		t.Errorf("%s has %d bytes, none cleared", file, len(now))
	}
	file, published := export("Export as published")
	if file != example+"-as-published.jsonl" || strings.Contains(published, "[Tool result cleared]") || len(published) <= len(now) {
		t.Errorf("%s has %d bytes, the present history %d", file, len(published), len(now))
	}
	for _, text := range []string{now, published} {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for _, line := range lines {
			if !strings.HasPrefix(line, `{"role":"`) && !strings.Contains(line, `"role":`) {
				t.Errorf("a line is no message: %.80s", line)
			}
		}
		if len(lines) < 10 {
			t.Errorf("%d messages", len(lines))
		}
	}
	p.quiet()
}
