package term

import (
	"os"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// Bar shows the progress of a long command, and an estimate of the time that is left. It is visible only
// on a terminal.
type Bar struct{ bar *progressbar.ProgressBar }

// NewBar is a bar on f. It shows the count where total is one that readers have met.
func NewBar(f *os.File, what string, total int64, count bool) *Bar {
	options := []progressbar.Option{
		progressbar.OptionSetVisibility(isatty.IsTerminal(f.Fd())), progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish(),
	}
	if count {
		options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts())
	}
	return &Bar{progressbar.NewOptions64(total, options...)}
}

// A bar that cannot be drawn stops no command: errors are left out.

// Add moves the bar on.
func (b *Bar) Add(n int64) { _ = b.bar.Add64(n) }

// Describe changes what it shows.
func (b *Bar) Describe(what string) { b.bar.Describe(what) }

// Clear makes room for a line; the bar comes back with its next step.
func (b *Bar) Clear() { _ = b.bar.Clear() }

// Done removes it.
func (b *Bar) Done() { _ = b.bar.Finish() }
