package browser

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The demo in a terminal, line after line; with -pictures it is written to docs/console.
func TestTerminal(t *testing.T) {
	if !*pictures {
		t.Skip("SKIPPED: no check, but what writes docs/console: make test-console ARGS='-run TestTerminal -pictures'")
	}
	cmd := exec.Command("scripts/demo")
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "COLUMNS=110")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := append([]string{"$ make demo"}, strings.Split(strings.TrimSpace(string(out)), "\n")...)
	file := filepath.Join(root(t), "docs", "console", "demo.svg")
	if err := os.WriteFile(file, []byte(terminal(lines)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// terminal draws lines as they appear in a terminal. Without animations, or with reduced motion,
// all are there at once.
func terminal(lines []string) string {
	const wide, high, size = 7.25, 17, 12
	longest := 0
	for _, l := range lines {
		longest = max(longest, len([]rune(l)))
	}
	w, h := int(float64(longest)*wide)+40, len(lines)*high+52
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-label="The output of make demo">`+"\n", w, h, w)
	b.WriteString("<style>text{font:12px ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d7dae0;white-space:pre}.b{fill:#fff;font-weight:600}.p{fill:#93a9ff}" +
		"@media (prefers-reduced-motion:no-preference){text{animation:s .2s both}}@keyframes s{from{opacity:0}}</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="10" fill="#15171a"/><g fill="#4a4f57"><circle cx="20" cy="18" r="5"/><circle cx="37" cy="18" r="5"/><circle cx="54" cy="18" r="5"/></g>`+"\n", w, h)
	for i, l := range lines {
		class := ""
		switch {
		case strings.HasPrefix(l, "$ "):
			class = ` class="p"`
		case strings.HasPrefix(l, "SESSION"), strings.HasPrefix(l, " #"), strings.HasPrefix(l, "Next:"), strings.HasPrefix(l, "One of them"):
			class = ` class="b"`
		}
		if l == "" {
			continue
		}
		var text strings.Builder
		_ = xml.EscapeText(&text, []byte(l)) // into memory
		fmt.Fprintf(&b, `<text x="20" y="%d"%s style="animation-delay:%.2fs" xml:space="preserve">%s</text>`+"\n", 34+high+i*high-size/2, class, float64(i)*0.08, text.String())
	}
	b.WriteString("</svg>\n")
	return b.String()
}
