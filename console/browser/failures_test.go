package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// intercept has a function of JavaScript answer the page's requests; it gets a path, and returns undefined for those
// that go to the worker.
func (p *page) intercept(answer string) {
	p.t.Helper()
	eval[bool](p, `(() => {
		window.sent ??= fetch
		const answer = `+answer+`
		const json = (status, body) => new Response(JSON.stringify(body), {status})
		window.fetch = (path, init) => answer(String(path), json, init) ?? window.sent(path, init)
		return true
	})()`)
}

// A refusal is shown beside the rows of before.
func TestRefusedList(t *testing.T) {
	s := startWorker(t, "")
	s.send("default", "s1", turn("hi"))
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("s1")
	p.intercept(`(path, json) => path.startsWith('/v1/sessions?') ? Promise.resolve(json(503, {code: 'unavailable', message: 'The worker is busy.'})) : undefined`)
	s.send("default", "s2", turn("hi"))
	p.shows("The worker is busy. This is the last answer.")
	p.shows("s1")
	p.intercept(`() => undefined`)
	s.send("default", "s3", turn("hi"))
	p.shows("s3")
	p.wait(`!document.querySelector('.outcome')`)
	p.quiet()
}

// A request whose answer never comes is sent again once the worker is back.
func TestLostAnswers(t *testing.T) {
	s := startWorker(t, "")
	s.send("default", "s1", turn("hi"))
	for _, view := range []string{"sessions", "tenants"} {
		t.Run(view, func(t *testing.T) {
			p := open(t, s.url, "#/"+view, desktop)
			p.shows("default")
			p.intercept(`(path, json, init) => path.startsWith('/v1/` + view + `?') && !window.back ? new Promise((_, end) => {
				window.lost = true
				init.signal?.addEventListener('abort', () => end(init.signal.reason))
			}) : undefined`)
			p.wait(`window.lost`)
			s.send("of-"+view, "s2", turn("hi"))
			eval[bool](p, `(window.back = true, dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})))`)
			p.shows("of-" + view)
			p.quiet()
		})
	}
}

// Rows that are scrolled to while others are read come after those.
func TestScrolledMeanwhile(t *testing.T) {
	s := startWorker(t, "")
	s.publish("", "load", "--sessions", "150", "--turns", "1", "--speed", "0")
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("150 sessions")
	p.intercept(`(path, json, init) => path.startsWith('/v1/sessions?') && !path.includes('after=') && !window.held ? new Promise(go => {
		window.held = () => go(window.sent(path, init))
	}) : undefined`)
	p.wait(`window.held`)
	eval[bool](p, `(document.querySelector('.rows').scrollTop = 1e9, true)`)
	p.wait(`document.querySelector('.rows [data-index="99"]')`)
	eval[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => { window.held(); done(true) })))`)
	p.wait(`document.querySelector('[role=table]').ariaRowCount === '151'`)
	p.quiet()
}

// An answer that is cut off is none: the page waits for the worker, and reads again.
func TestCutAnswer(t *testing.T) {
	s := startWorker(t, "")
	s.send("default", "s1", turn("hi"))
	p := open(t, s.url, "#/fleet", desktop)
	p.shows("1 worker serves")
	p.intercept(`path => path.startsWith('/v1/sessions?') && !window.cut ? (window.cut = true,
		Promise.resolve(new Response(new ReadableStream({start: to => to.error(new TypeError('network error'))})))) : undefined`)
	eval[bool](p, `(location.hash = '#/sessions', true)`)
	p.shows("s1")
	p.quiet()
}

// A comparison without an answer shows so.
func TestNoComparison(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example, desktop)
	p.intercept(`path => path.endsWith('/whatif') ? Promise.reject(new TypeError('network error')) : undefined`)
	p.click("What if")
	p.wait(`document.querySelector('main .outcome.bad')?.innerText.startsWith('The worker does not answer.')`)
	p.quiet()
}

// A compaction can be undone once the page has the view before it.
func TestNothingToUndo(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("5 sessions")
	p.intercept(`(path, json) => path.endsWith('/timeline') ? Promise.resolve(json(503, {code: 'unavailable', message: 'The worker is busy.'})) : undefined`)
	eval[bool](p, `(location.hash = '#/s/default/`+example+`', true)`)
	undo := `[...document.querySelectorAll('.head button')].find(b => b.innerText.startsWith('Undo'))`
	p.wait(undo)
	p.shows("The worker is busy.")
	if eval[bool](p, `!`+undo+`.disabled`) {
		t.Error("a compaction can be undone that the page does not know")
	}
	p.intercept(`() => undefined`)
	s.send("default", "s1", turn("hi"))
	eval[bool](p, `dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))`)
	p.wait(`!` + undo + `.disabled`)
	p.quiet()
}

// A search of tenants keeps the focus while it is typed.
func TestSearchTenants(t *testing.T) {
	s := startWorker(t, "")
	s.send("acme", "s1", turn("hi"))
	s.send("globex", "s1", turn("hi"))
	p := open(t, s.url, "#/tenants", desktop)
	p.shows("2 tenants")
	for _, part := range []string{"glo", "bex"} {
		p.do(chromedp.SendKeys(chromedp.CSS(":focus, body:not(:has(:focus)) input[type=search]"), part))
		p.wait(`location.hash.includes('text=glo') && document.querySelectorAll('[aria-label=Tenants] tbody tr').length === 1`)
		if got := eval[string](p, `document.activeElement.type ?? ''`); got != "search" {
			t.Fatalf("after %s the focus is on %q", part, got)
		}
	}
	p.wait(`location.hash.includes('text=globex')`)
	p.quiet()
}

// An export has pages of one history alone, and its instructions first.
func TestExportOfPages(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example, desktop)
	p.shows("Live")
	p.intercept(`(path, json) => {
		if (!path.includes('/context?')) return
		const page = Number(new URLSearchParams(path.split('?')[1]).get('page'))
		window.reads = (window.reads ?? 0) + 1
		const generation = window.reads === 1 ? 1 : 2 // it is compacted meanwhile
		const content = generation + '.' + page
		return Promise.resolve(json(200, {v: 1, known: true, generation, through: {seq: 9, turn: 3}, page, pages: 2, messages: [{role: 'user', content}], ...(page === 2 ? {system: 'Be brief.'} : {})}))
	}`)
	eval[bool](p, `(URL.createObjectURL = b => { window.saved = b.text(); return 'data:,' }, HTMLAnchorElement.prototype.click = () => { window.done = true }, true)`)
	eval[bool](p, `([...document.querySelectorAll('.head button')].find(b => b.innerText === 'Export').dispatchEvent(new MouseEvent('click', {bubbles: true})), true)`)
	p.wait(`window.done`)
	want := `{"role":"system","content":"Be brief."}` + "\n" + `{"role":"user","content":"2.1"}` + "\n" + `{"role":"user","content":"2.2"}` + "\n"
	if got := eval[string](p, `window.saved`); got != want {
		t.Errorf("saved %q, not %q", got, want)
	}
	if reads := eval[int](p, `window.reads`); reads != 4 {
		t.Errorf("%d pages were read", reads)
	}
	if text := p.text(); strings.Contains(text, "changes faster") {
		t.Error(text)
	}
	p.quiet()
}
