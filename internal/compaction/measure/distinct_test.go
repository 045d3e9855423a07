package measure_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
)

// B14: of what is kept by its lines both ends stay, and between them one line of each shape, first those
// that name a word of the call. A list without lines is taken by its records.
func TestDistinctLines(t *testing.T) {
	log := "begin\n" + strings.Repeat("GET /health 200 in 3 ms\n", 400) + "panic: no route\n" + strings.Repeat("GET /health 200 in 12 ms\n", 400) + "end"
	var paths strings.Builder
	for i := range 400 {
		fmt.Fprintf(&paths, "pkg%c%c/file.go: %s\n", 'a'+i/20, 'a'+i%20, strings.Repeat("x", 10))
	}
	records := "[" + strings.Repeat(`{"id":17,"state":"done"},`, 400) + `{"id":401,"state":"failed"},` + strings.Repeat(`{"id":9,"state":"done"},`, 400) + "]"
	for name, c := range map[string]struct {
		text  string
		named []string
		want  []string
	}{
		"a log":             {log, nil, []string{"begin\n", "panic: no route\n", "end"}},
		"a listing":         {paths.String(), []string{"pkgmm"}, []string{"pkgaa/", "pkgmm/", "pkgtt/"}},
		"a list of records": {records, nil, []string{`[{"id":17`, `{"id":401,"state":"failed"},`}},
		"one line":          {strings.Repeat("x", 9_000), nil, []string{"xxx"}},
	} {
		l := measure.OutputLimits{MaxBytes: 600, MaxLines: 2_000, Keep: measure.KeepLines, Named: c.named}
		got, cut := measure.LimitOutput(c.text, l)
		if !cut || len(got) > 700 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in %q", name, want, got)
			}
		}
	}
}
