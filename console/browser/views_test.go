package browser

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const example = "example-fix-validator"

// view is one of the views, on a shipped session, with texts that it shows.
type view struct {
	name, hash string
	texts      []string
}

var views = []view{
	{"sessions", "#/sessions", []string{"5 sessions", example, "example-rename-flag", "fullest first"}},
	{"session", "#/s/default/" + example + "?generation=1", []string{"Tokens of the next call, turn by turn", "Generation 1", "Before", "After", "prune"}},
	{"context", "#/s/default/" + example + "/context", []string{"What fills the window", "By kind", "Largest entries", "valid"}},
	{"what-if", "#/s/default/" + example + "/what-if", []string{"Another policy on this session", "as it was", "threshold 0.8, target 0.5", "Summaries cost nothing"}},
	{"tenants", "#/tenants", []string{"1 tenant", "default", "Spent", "= Net saving"}},
	{"fleet", "#/fleet", []string{"1 worker serves all 4 partitions", "Partitions", "Summary jobs"}},
}

var sizes = []size{{360, 740, false}, {768, 1024, true}, {1280, 800, false}, {1920, 1080, true}}

// Every view shows the shipped sessions at every size, in light and dark: no part sticks out, the
// console stays empty, and axe-core finds no violation.
func TestViews(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	axe := axeSource(t)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			p := open(t, s.url, v.hash, desktop)
			for _, text := range v.texts {
				p.shows(text)
			}
			for _, at := range sizes {
				p.resize(at)
				p.wait(fmt.Sprintf("innerWidth === %d", at.width))
				p.fits()
				p.accessible(axe)
			}
			if eval[bool](p, `/trigger/i.test(document.body.innerText)`) {
				t.Error("the view has trigger for the threshold of the policy")
			}
			p.quiet()
		})
	}
}

func axeSource(t *testing.T) string {
	t.Helper()
	file := os.Getenv("AXE")
	if file == "" {
		return "" // scripts/console has printed why
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// accessible runs axe-core on the page.
func (p *page) accessible(axe string) {
	p.t.Helper()
	if axe == "" {
		return
	}
	eval[bool](p, "("+"window.axe || (() => {"+axe+"})(), true)")
	found := eval[[]string](p, `axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
		.then(r => r.violations.flatMap(v => v.nodes.slice(0, 3).map(n => v.id + ': ' + n.html.slice(0, 160) + ' ' + n.failureSummary.slice(0, 300))))`)
	for _, f := range found {
		p.t.Errorf("axe: %s", strings.ReplaceAll(f, "\n", " "))
	}
}

// Choosing a generation shows its before and after; the address names it, and leads there again.
func TestBeforeAndAfter(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example, desktop)
	p.click("Generation 1")
	p.wait(`location.hash.endsWith('generation=1')`)
	p.shows("[Tool result cleared]")
	p.click("Recall the original")
	p.shows(`"role"`)
	p.navigate(eval[string](p, "location.hash"))
	p.wait(`document.querySelector('.gens [aria-current=true]')?.textContent.includes('Generation 1')`)
	p.quiet()
}

// The what-if: each policy states its shares, one is named the cheapest, and one with the shares in force is no row
// of its own; the address leads to the same comparison.
func TestWhatIf(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example+"/what-if", desktop)
	rows := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll('[aria-label=Comparison] tbody td:first-child')].map(e => e.innerText)`)
	}
	p.wait(`document.querySelectorAll('[aria-label=Comparison] tbody tr').length === 3`)
	cheapest := 0
	for i, row := range rows() {
		if !strings.HasPrefix(row, "threshold 0.") || !strings.Contains(row, ", target 0.") || !strings.Contains(row, " tokens, down to ") || strings.Contains(row, "as it was") != (i == 0) {
			t.Errorf("row %d: %q", i, row)
		}
		cheapest += strings.Count(row, "cheapest")
	}
	if cheapest != 1 {
		t.Errorf("%d policies are the cheapest", cheapest)
	}
	p.wait(`/^(Cheapest: |No better policy)/.test(document.querySelector('.verdict').innerText)`)
	slide := func(text, value string) {
		eval[bool](p, `(e => { e.value = `+value+`; return e.dispatchEvent(new Event('input', {bubbles: true})) })(
			[...document.querySelectorAll('label')].find(e => e.innerText.startsWith('`+text+`')).querySelector('input'))`)
	}
	slide("Threshold", "0.7")
	p.click("Compare")
	p.wait(`document.querySelectorAll('[aria-label=Comparison] tbody tr').length === 4`)
	if row := rows()[1]; !strings.HasPrefix(row, "threshold 0.7, target 0.6") {
		t.Errorf("the policy that was chosen: %q", row)
	}
	p.navigate(eval[string](p, "location.hash"))
	p.wait(`document.querySelector('[aria-label=Comparison]')?.innerText.includes('threshold 0.7, target 0.6')`)
	slide("Threshold", "0.8")
	p.click("Compare")
	p.wait(`document.querySelectorAll('[aria-label=Comparison] tbody tr').length === 3`)
	p.quiet()
}

// The context now and before the last compaction have the same rows, and each sums to its input: now that of the
// budget.
func TestContext(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example+"/context", desktop)
	p.wait(`document.querySelector('[aria-label="By kind"] thead')?.innerText.includes('Before')`)
	column := func(n int) (sum, foot int) {
		number := `e => Number(e.innerText.replaceAll(',', '').replace('–', '0').replace('−', '-'))`
		at := fmt.Sprintf(`[...document.querySelectorAll('[aria-label="By kind"] %%s tr')].map(r => r.children[%d]).map(%s)`, n, number)
		return eval[int](p, fmt.Sprintf(at, "tbody")+`.reduce((a, b) => a + b, 0)`), eval[int](p, fmt.Sprintf(at, "tfoot")+"[0]")
	}
	for _, n := range []int{2, 4} {
		if sum, foot := column(n); sum != foot || sum <= 0 {
			t.Errorf("column %d has %d tokens together, and %d below", n, sum, foot)
		}
	}
	_, now := column(2)
	if budget := eval[string](p, `document.querySelector('.fact-wide dd').innerText`); !strings.HasPrefix(strings.ReplaceAll(budget, ",", ""), fmt.Sprint(now, " ")) {
		t.Errorf("the kinds have %d tokens, the session %q", now, budget)
	}
	if n := eval[int](p, `[...document.querySelectorAll('[aria-label="By kind"] tbody tr')].filter(r => r.innerText.startsWith('Correction')).length`); n != 1 {
		t.Errorf("%d rows of corrections", n)
	}
	p.quiet()
}

// Tenants: the one that spends most comes first, saved less lost and summaries is the net, and models without a name
// are unknown.
func TestTenants(t *testing.T) {
	s := startWorker(t, "")
	s.send("small", "s1", turn("hi"))
	s.examples()
	p := open(t, s.url, "#/tenants", desktop)
	p.shows("2 tenants")
	if first := eval[string](p, `document.querySelector('[aria-label=Tenants] tbody a').innerText`); first != "default" {
		t.Errorf("%s comes first", first)
	}
	money := eval[[]float64](p, `[...document.querySelector('[aria-label=Tenants] tbody tr').children].slice(3, 8).map(e => Number(e.innerText.replaceAll('−', '-').replace('$', '')))`)
	if spent, saved, lost, summaries, net := money[0], money[1], money[2], money[3], money[4]; spent <= 0 || math.Abs(saved-lost-summaries-net) > 0.011 {
		t.Errorf("money: %v", money)
	}
	eval[bool](p, `([...document.querySelectorAll('tbody button')].at(-1).click(), true)`)
	p.shows("unknown model")
	p.quiet()
}

// Ten thousand sessions: the document has the rows in view alone, whatever is scrolled to, and every
// session can be reached.
func TestManySessions(t *testing.T) {
	s := startWorker(t, "")
	s.publish("", "load", "--sessions", "10000", "--turns", "1", "--speed", "0", "--tenants", "5")
	p := open(t, s.url, "#/sessions", desktop)
	p.shows("10,000 sessions")
	if _, err := chromedp.Call(p.ctx, cdp.AddScriptToEvaluateOnNewDocument, cdp.AddScriptToEvaluateOnNewDocumentParams{Source: `
		new MutationObserver((_, o) => {
			if (!document.querySelector('.rows [role=row]')) return
			o.disconnect()
			requestAnimationFrame(() => { window.painted = performance.now() })
		}).observe(document, {childList: true, subtree: true})`}); err != nil {
		t.Fatal(err)
	}
	p.navigate("#/sessions")
	p.wait(`window.painted`)
	fmt.Printf("console: the first rows of 10,000 sessions are painted after %.0f ms\n", eval[float64](p, `window.painted`))
	rows := func() int { return eval[int](p, `document.querySelectorAll('.rows [role=row]').length`) }
	most := 0
	for range 40 {
		most = max(most, rows())
		eval[bool](p, `(document.querySelector('.rows').scrollTop = 1e9, true)`)
		p.wait(`Math.abs(document.querySelector('.rows').scrollTop + document.querySelector('.rows').clientHeight - document.querySelector('.rows').scrollHeight) < 4`)
		if eval[int](p, `Number(document.querySelector('[role=table]').ariaRowCount)`) > 10_000 {
			break
		}
		p.wait(`document.querySelector('.rows').scrollTop + document.querySelector('.rows').clientHeight < document.querySelector('.rows').scrollHeight - 4`)
	}
	if n := eval[int](p, `Number(document.querySelector('[role=table]').ariaRowCount)`); n != 10_001 {
		t.Errorf("the table has %d rows, want 10,001", n)
	}
	if most > 60 {
		t.Errorf("%d rows were in the document at once", most)
	}
	p.fits()
	p.quiet()
}

// A name of any characters is an address that leads to its session.
func TestNames(t *testing.T) {
	s := startWorker(t, "")
	name := "Größe 7/a?b#c%d"
	s.send("default", name, map[string]any{"messages": []any{map[string]string{"role": "user", "content": "hi"}}})
	p := open(t, s.url, "#/sessions", desktop)
	p.shows(name)
	p.click(name)
	p.wait(`document.querySelector('h1')?.textContent === ` + quoted(name))
	if hash := eval[string](p, "location.hash"); !strings.HasPrefix(hash, "#/s/default/") || strings.Contains(hash, url.PathEscape(name)) {
		t.Errorf("the address is %s, which has the id of the session", hash)
	}
	p.quiet()
}

// The money of a session is one amount, above and in the comparison. A generation that it does not have is named, the
// times have a day, the tokens of messages are put beside those of the input, and rewinds are no compactions.
func TestSessionIsExact(t *testing.T) {
	s := startWorker(t, "")
	s.examples()
	p := open(t, s.url, "#/s/default/"+example+"?generation=99", desktop)
	p.shows("This session has no generation 99. The newest, ")
	p.wait(`/^\d+ \w+, \d\d:\d\d:\d\d$/.test(document.querySelector('.gens .nowrap')?.innerText)`)
	p.shows("The messages below have ")
	fact := func(name string) string {
		return eval[string](p, `[...document.querySelectorAll('.facts > div')].find(e => e.innerText.startsWith('`+name+`')).querySelector('dd').firstChild.data`)
	}
	spent, compactions := fact("Spent"), fact("Compactions")
	p.click("Undo last compaction…")
	p.click("Rewind")
	p.shows("and 1 rewind")
	if got := fact("Compactions"); got != compactions {
		t.Errorf("%s compactions after a rewind, %s before", got, compactions)
	}
	p.navigate("#/s/default/" + example + "/what-if")
	p.wait(`document.querySelector('[aria-label=Comparison] tbody td:nth-child(2)')?.firstChild.data === ` + fmt.Sprintf("%q", spent))
	p.quiet()
}

// The table of tenants has room at 1,280 pixels.
func TestTenantsFit(t *testing.T) {
	s := startWorker(t, "")
	s.publish("", "load", "--sessions", "6", "--turns", "30", "--speed", "0", "--tenants", "3", "--tenant", "team", "--window", "24000")
	p := open(t, s.url, "#/tenants", desktop)
	p.shows("team-3")
	p.wait(`(e => e.scrollWidth <= e.clientWidth)(document.querySelector('[aria-label=Tenants] .scroll'))`)
}
