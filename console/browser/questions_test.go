package browser

import "testing"

// The five questions of an operator, each from the first view, with the clicks that its answer takes.
func TestQuestions(t *testing.T) {
	s := startWorker(t, "")
	s.send("small", "s1", turn("hi"))
	s.examples()
	at := eval[string](open(t, s.url, "#/s/default/"+example, desktop), `new Promise(done => {
		const look = () => { const e = document.querySelector('.gens .nowrap'); e ? done(e.innerText) : setTimeout(look, 50) }
		look()
	})`)
	for _, q := range []struct {
		question string
		clicks   []string
		answers  []string
	}{
		{"why was the session compacted at that time?", []string{example, "Generation 1"}, []string{at, "The input reached the available input, so the session was compacted at once.", "prune"}},
		{"what did its agent lose?", []string{example, "Generation 1"}, []string{"Before", "After", "[Tool result cleared]", "Recall the original"}},
		{"which worker is slow?", []string{"Fleet"}, []string{"slowest first", "Lag"}},
		{"which tenant spends most?", []string{"Tenants"}, []string{"Spent ↓", "default"}},
		{"would a policy with a target of 0.5 be better?", []string{example, "What if"}, []string{"threshold 0.8, target 0.5", "as it was", "cheapest"}},
	} {
		t.Run(q.question, func(t *testing.T) {
			p := open(t, s.url, "", desktop)
			p.shows("6 sessions")
			for _, text := range q.clicks {
				p.click(text)
			}
			for _, text := range q.answers {
				p.shows(text)
			}
			p.quiet()
		})
	}
}
