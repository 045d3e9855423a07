package figures

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// FileEnv names the file that [Print] adds its lines to, beside the standard output,
// which go test drops when several packages pass. "" is none.
const FileEnv = "COMPACTD_RELIABILITY"

// Prefix begins every line of figures.
const Prefix = "reliability "

// TB is what [Print] needs of a [testing.TB].
type TB interface {
	Name() string
	Helper()
	Errorf(format string, args ...any)
}

// Print prints the figures of one row of the table, as pairs of a key and a value.
// Keys and values are words: blanks in them become _.
func Print(t TB, row string, pairs ...any) {
	t.Helper()
	if err := Record(t.Name(), row, pairs...); err != nil {
		t.Errorf("print figures: %v", err)
	}
}

// Skipped prints that a test cannot show its row here, and why. The caller skips.
func Skipped(t TB, row, why string) {
	t.Helper()
	Print(t, row, "skipped", why)
}

// Record is [Print] for a program: test is its name.
func Record(test, row string, pairs ...any) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s test=%s", Prefix, row, word(test))
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, " %s=%s", word(pairs[i]), word(pairs[i+1]))
	}
	b.WriteByte('\n')
	if _, err := os.Stdout.WriteString(b.String()); err != nil {
		return err
	}
	return appendTo(os.Getenv(FileEnv), b.String())
}

func word(v any) string { return strings.Join(strings.Fields(fmt.Sprint(v)), "_") }

func appendTo(path, line string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
