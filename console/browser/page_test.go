package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// chromium is the browser of all tests; each page has storage of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	path := os.Getenv("CHROMIUM")
	if path == "" {
		fmt.Println("SKIPPED: CHROMIUM names no browser; run make test-console")
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true))
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	var stop context.CancelFunc
	chromium, stop = chromedp.NewContext(allocator)
	if err := chromedp.Do(chromium, chromedp.Navigate("about:blank")); err != nil {
		fmt.Println("start", path+":", err)
		os.Exit(1)
	}
	status := m.Run()
	stop()
	free()
	os.Exit(status)
}

// page is a tab. A message of its console is an error of the test, unless it was expected.
type page struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	messages []string
}

// size of a window, and its colours.
type size struct {
	width, height int64
	dark          bool
}

var desktop = size{1280, 800, false}

// open returns a tab with the page of a worker.
func open(t *testing.T, url, hash string, s size) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 4*deadline)
	t.Cleanup(stop)
	p := &page{t: t, ctx: ctx, url: url}
	p.listen()
	p.resize(s)
	p.navigate(hash)
	return p
}

func (p *page) listen() {
	console := chromedp.Console(p.ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.messages = append(p.messages, m.String())
			p.mu.Unlock()
		}
	}()
}

// quiet fails the test when the console had a message that contains none of the texts.
func (p *page) quiet(expected ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, m := range p.messages {
		for _, text := range expected {
			if strings.Contains(m, text) {
				continue next
			}
		}
		p.t.Errorf("console: %s", m)
	}
}

func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) resize(s size) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(s.width, s.height))
	scheme := map[bool]string{false: "light", true: "dark"}[s.dark]
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		p.t.Fatal(err)
	}
}

// navigate goes to a view and waits until it shows its answer.
func (p *page) navigate(hash string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+"/"+hash))
	p.wait(`document.querySelector('main h1') && !/Loading…|Reading…/.test(document.querySelector('main').innerText)`)
}

// wait waits until an expression is true.
func (p *page) wait(expression string) {
	p.t.Helper()
	for {
		_, err := chromedp.Run(p.ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(deadline), chromedp.WithPollingInterval(50*time.Millisecond)))
		if err == nil {
			return
		}
		if strings.Contains(err.Error(), "Cannot find context") { // the page went on to another document meanwhile
			continue
		}
		p.t.Fatalf("wait for %s: %v\nthe page shows:\n%s", expression, err, p.text())
	}
}

// shows waits until the view has a text.
func (p *page) shows(text string) {
	p.t.Helper()
	p.wait(`document.querySelector('#app').innerText.includes(` + quoted(text) + `)`)
}

func (p *page) text() string { return eval[string](p, `document.body.innerText.slice(0, 4000)`) }

// click clicks the first button or link whose text begins with a text: of the dialog, while one is open.
func (p *page) click(text string) {
	p.t.Helper()
	find := `[...(document.querySelector('dialog[open]') ?? document).querySelectorAll('button, a')].find(e => e.textContent.trim().startsWith(` + quoted(text) + `) && !e.disabled)`
	p.wait(find)
	eval[bool](p, `(`+find+`.click(), true)`)
}

func eval[T any](p *page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return value
}

func quoted(text string) string {
	data, _ := json.Marshal(text) // of a string
	return string(data)
}

// fits fails the test when the page can be scrolled sideways.
func (p *page) fits() {
	p.t.Helper()
	if wide := eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		p.t.Errorf("the page is %d px wider than the window; the widest: %s", wide, eval[string](p, `[...document.querySelectorAll('main *')]
			.filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth)
			.slice(0, 3).map(e => e.outerHTML.slice(0, 160)).join(' | ')`))
	}
}

func quotedInt(n int) string { return fmt.Sprint(n) }

func list(texts []string) string {
	data, _ := json.Marshal(texts) // of strings
	return string(data)
}
