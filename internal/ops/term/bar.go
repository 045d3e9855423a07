package term

import (
	"os"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// Bar shows how far a long command is, of how much, and how long the rest will take. It is on a
// terminal alone.
type Bar struct {
	bar *progressbar.ProgressBar // nil where it is not shown
}

// NewBar is a bar on f. It shows the count where total is one that readers have met.
func NewBar(f *os.File, what string, total int64, count bool) *Bar {
	if !isatty.IsTerminal(f.Fd()) {
		return &Bar{}
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what), progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(),
	}
	if count {
		options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts())
	}
	return &Bar{progressbar.NewOptions64(total, options...)}
}

// A bar that cannot be drawn stops no command: errors are left out.

// Add moves the bar on.
func (b *Bar) Add(n int64) {
	if b.bar != nil {
		_ = b.bar.Add64(n)
	}
}

// Describe changes what it shows.
func (b *Bar) Describe(what string) {
	if b.bar != nil {
		b.bar.Describe(what)
	}
}

// Clear makes room for a line; the bar comes back with its next step.
func (b *Bar) Clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}

// Done removes it.
func (b *Bar) Done() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
	b.bar = nil
}
