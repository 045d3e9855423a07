package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// key presses a key.
func (p *page) key(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// tabTo presses Tab until the focused element fits an expression of e, and requires that each
// stop on the way can be seen.
func (p *page) tabTo(expression string) {
	p.t.Helper()
	for range 80 {
		p.key(kb.Tab)
		if ok := eval[bool](p, `(() => {const e = document.activeElement, o = getComputedStyle(e); return e === document.body || o.outlineStyle !== 'none' && parseFloat(o.outlineWidth) >= 1})()`); !ok {
			p.t.Errorf("the focus cannot be seen on %s", eval[string](p, `document.activeElement.outerHTML.slice(0, 120)`))
		}
		if eval[bool](p, `(e => !!(`+expression+`))(document.activeElement)`) {
			return
		}
	}
	p.t.Fatalf("Tab does not lead to %s", expression)
}

// Everything works with the keyboard alone: a session is found and opened, a generation chosen, and a
// dialog confirmed and left; the focus is always visible.
func TestKeyboard(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("5 sessions")
	p.tabTo(`e.className === 'skip'`)
	p.key(kb.Enter)
	p.wait(`document.activeElement.id === 'main'`)
	p.tabTo(`e.type === 'search'`)
	p.key("fix-val")
	p.shows("1 of 5 sessions")
	p.tabTo(`e.closest('.rows') && e.matches('a')`)
	p.key(kb.Enter)
	p.shows("Tokens of the next call")
	p.tabTo(`e.textContent.startsWith('Compact…')`)
	p.key(kb.Enter)
	p.wait(`document.querySelector('dialog[open]')`)
	p.key(kb.Escape)
	p.wait(`!document.querySelector('dialog[open]')`)
	p.wait(`document.activeElement.textContent.startsWith('Compact…')`)
	p.tabTo(`e.textContent.startsWith('Generation 1')`)
	p.key(kb.Enter)
	p.wait(`location.hash.endsWith('generation=1')`)
	p.quiet()
}

// Arrow keys, Home and End move through the rows, also to those that are not in the document yet.
func TestArrows(t *testing.T) {
	s := startWorker(t, "")
	s.publish("", "load", "--sessions", "90", "--turns", "1", "--speed", "0")
	p := open(t, s.url, "#/sessions?sort=name", desktop)
	p.shows("90 sessions")
	p.tabTo(`e.closest('.rows') && e.matches('a')`)
	at := func(index string) {
		t.Helper()
		p.wait(`document.activeElement.closest('[data-index]')?.dataset.index === '` + index + `'`)
	}
	at("0")
	p.key(kb.ArrowDown)
	at("1")
	p.key(kb.End)
	at("89")
	p.key(kb.ArrowUp)
	at("88")
	p.key(kb.Home)
	at("0")
	p.quiet()
}
