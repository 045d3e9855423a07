package transcript

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/events"
)

// The scripts show what sessions become of a file in each format, and what is reported
// of it.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, path := range scripts {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var name string
			from := string(Auto)
			d.ScanArgs(t, "name", &name)
			d.MaybeScanArgs(t, "from", &from)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(d.Input), 0o600); err != nil {
				t.Fatal(err)
			}
			return sameWords.Replace(strings.ReplaceAll(play(From(from), filepath.Join(dir, name)), dir+"/", ""))
		})
	}
}

// sameWords undoes that the JSON library words its errors by chance.
var sameWords = strings.NewReplacer("json: cannot unmarshal", "json: unable to unmarshal")

func play(from From, path string) string {
	s, err := Open(from, path)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var b strings.Builder
	for session := range s.Sessions(func(err error) { fmt.Fprintf(&b, "reported: %v\n", err) }) {
		fmt.Fprintf(&b, "session %s, %s\n", session.Name, session.Format)
		for _, kind := range slices.Sorted(maps.Keys(session.Missing)) {
			fmt.Fprintf(&b, "missing: %s %d\n", kind, session.Missing[kind])
		}
		for _, turn := range session.Turns {
			decoded, err := events.DecodeTurn(turn.Payload)
			if err != nil {
				fmt.Fprintf(&b, "turn %d: %v\n", turn.Number, err)
				continue
			}
			fmt.Fprintf(&b, "turn %d%s:%s\n", turn.Number, when(turn), about(decoded))
			for _, m := range turn.Messages {
				fmt.Fprintf(&b, "  %s\n", m)
			}
		}
	}
	return b.String()
}

func when(t Turn) string {
	if t.At.IsZero() {
		return ""
	}
	return " at " + t.At.Format("15:04:05")
}

func about(t *events.Turn) (s string) {
	if t.Model != nil {
		s += fmt.Sprintf(" model %s/%s %d", t.Model.Provider, t.Model.Name, t.Model.ContextWindow)
	}
	if t.System != nil {
		s += fmt.Sprintf(" system %s", t.System)
	}
	if t.Tools != nil {
		s += fmt.Sprintf(" tools %s", t.Tools)
	}
	if t.Usage != nil {
		s += fmt.Sprintf(" usage %+v", *t.Usage)
	}
	return s
}
