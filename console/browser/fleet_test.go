package browser

import "testing"

// The fleet shows each worker with its lag, the slowest first, and one that stops as stopped; the worker of the page
// has no answer while it is away.
func TestFleet(t *testing.T) {
	s := startWorker(t, "")
	other := s.beside()
	s.examples()
	p := open(t, s.url, "#/fleet", desktop)
	p.shows("2 workers serve all 4 partitions.")
	status := func(text string) string {
		return `[...document.querySelectorAll('[aria-label=Workers] tbody tr')].filter(r => r.children[1].innerText === '` + text + `').length`
	}
	p.wait(status("ok") + ` === 2`)
	if wrong := eval[int](p, `[...document.querySelectorAll('[aria-label=Workers] tbody tr')].filter(r => !/^\d+(\.\d+)? (s|min|h|d)$/.test(r.children[2].innerText)).length`); wrong != 0 {
		t.Errorf("%d workers have no lag", wrong)
	}
	p.wait(`[...document.querySelectorAll("[aria-label=Workers] tbody tr")].some(r => / (ms|s)$/.test(r.children[4].innerText))`) // of a commit
	other.stop()
	p.wait(status("stopped") + ` === 1 && ` + status("ok") + ` === 1`)
	p.shows("1 worker serves all 4 partitions.")
	s.stop()
	p.wait(status("no answer") + ` === 1`)
	p.quiet("ERR_", "Failed to load resource")
}
