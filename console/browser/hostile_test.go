package browser

import (
	"strings"
	"testing"
)

const script = `<script>window.hacked=1</script><img src=x onerror="window.hacked=1"><svg onload="window.hacked=1">`

// Content of any kind in every field is text: nothing runs, nothing is requested from elsewhere, and
// the layout holds.
func TestHostile(t *testing.T) {
	s := startWorker(t, "")
	word := strings.Repeat("w", 1<<20)
	rightToLeft := "\u202eمرحبا \u2066<b>\u202e abc"
	name := `"><script>window.hacked=1</script>` + "\u202eمرحبا"
	tool := func(id, name, input, result string) []any {
		return []any{
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": name, "input": map[string]string{"path": input}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": result}}},
		}
	}
	messages := []any{map[string]string{"role": "user", "content": script}}
	messages = append(messages, tool("t1", "read_file", script, word)...)
	messages = append(messages, tool("t2", "bash", rightToLeft, script)...)
	messages = append(messages, map[string]string{"role": "assistant", "content": rightToLeft}, map[string]string{"role": "user", "content": word[:200_000]})
	s.send("default", name, map[string]any{
		"model": map[string]any{"provider": "anthropic", "name": script, "context_window": 200_000}, "format": "anthropic",
		"system": script + rightToLeft, "tools": []any{map[string]any{"name": "read_file", "description": script, "input_schema": map[string]any{"type": "object"}}},
		"messages": messages,
	})
	s.send("default", name, map[string]any{"messages": []any{map[string]string{"role": "assistant", "content": "a"}, map[string]string{"role": "user", "content": script}}})
	axe := axeSource(t)
	p := open(t, s.url, "#/sessions", size{width: 360, height: 740})
	p.wait(`document.querySelector('.rows [role=row] a')`)
	hash := eval[string](p, `document.querySelector('.rows [role=row] a').getAttribute('href')`)
	for _, view := range []string{"#/sessions", hash, hash + "/context", hash + "/what-if", "#/tenants", "#/fleet"} {
		for _, at := range []size{{360, 740, false}, {1280, 800, true}} {
			p.resize(at)
			p.navigate(view)
			p.fits()
			p.accessible(axe)
			if eval[bool](p, `window.hacked !== undefined`) {
				t.Fatalf("%s: a script of a session ran", view)
			}
			if n := eval[int](p, `document.querySelectorAll('main script, main svg').length + [...document.querySelectorAll('img')].filter(i => !i.src.endsWith('/icon.svg')).length`); n != 0 {
				t.Errorf("%s: %d elements come from content", view, n)
			}
		}
	}
	p.navigate(hash)
	p.click("Compact…")
	p.shows("Preview")
	p.fits()
	p.quiet()
}
