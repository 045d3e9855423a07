package toolcall_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/events/toolcall"
)

// shown lists uses, one a line: R or W, ! where it is certain, and the path.
func shown(all iter.Seq[toolcall.Use]) string {
	var b strings.Builder
	for u := range all {
		kind := "R "
		if u.Changed {
			kind = "W "
		}
		if u.Certain {
			kind = "W! "
		}
		b.WriteString(kind + u.Path + "\n")
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

// Scripts under testdata say which files calls use; go test -rewrite writes what is found now.
//
//	shell          the files of a command line
//	call TOOL      of a call with JSON arguments
//	ledger TOOL    what a ledger has of it: path, the other arguments, and whether it changes it
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "shell":
				return shown(toolcall.Uses("bash", codec.WriteObject([]codec.Member{{Name: "command", Value: codec.Quote(d.Input)}})))
			case "call":
				return shown(toolcall.Uses(d.CmdArgs[0].Key, codec.Raw(d.Input)))
			case "ledger":
				path, rest, changes := toolcall.File(d.CmdArgs[0].Key, codec.Raw(d.Input))
				out := path
				if changes {
					out = "W " + out
				} else if path != "" {
					out = "R " + out
				}
				return strings.Join(append([]string{out}, rest...), " | ") + "\n"
			}
			t.Fatalf("%s is no command", d.Cmd)
			return ""
		})
	})
}

// Any text is read in bounds, and every path stands in it.
func TestAnyCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{
			"cat ", "sed -i ", "a.py", "'", `"`, "\\", "$(", ")", "`", "<<EOF\n", "EOF\n", "> ", ">> ", "| tee ", " && ", "; ", "\n", "-", "mv ", "(", "{", "x/y ", "[[ ", "日",
		})
		s := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		for u := range toolcall.Uses("bash", codec.WriteObject([]codec.Member{{Name: "command", Value: codec.Quote(s)}})) {
			if u.Path == "" || strings.HasPrefix(u.Path, "-") {
				t.Fatalf("%q has the path %q", s, u.Path)
			}
		}
	})
}

// Recorded calls of real harnesses: their commands name files, and none that cannot be one.
func TestRecordedCalls(t *testing.T) {
	dir := os.Getenv("COMPACTD_SESSIONS")
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if dir == "" || len(files) == 0 {
		t.Skip("SKIPPED: COMPACTD_SESSIONS names no recorded sessions")
	}
	for _, name := range files {
		found := map[string]int{}
		eachCall(t, name, func(tool string, args codec.Raw) {
			for u := range toolcall.Uses(tool, args) {
				found[u.Path]++
				if strings.ContainsAny(u.Path, "\n`") || strings.Contains(u.Path, "://") || strings.HasPrefix(u.Path, "-") {
					t.Errorf("%s: %s has the path %q", filepath.Base(name), tool, u.Path)
				}
			}
		})
		var all []string
		for p := range found {
			all = append(all, p)
		}
		sort.Strings(all)
		t.Logf("%s: %d files: %s", filepath.Base(name), len(all), strings.Join(all[:min(len(all), 40)], " "))
	}
}

// eachCall finds the calls in a transcript, whatever its form.
func eachCall(t *testing.T, name string, visit func(tool string, args codec.Raw)) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 256<<20)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			tool, _ := v["name"].(string)
			for _, member := range []string{"input", "arguments"} {
				if args, ok := v[member]; ok && tool != "" {
					raw, _ := json.Marshal(args)
					if s, ok := args.(string); ok && json.Valid([]byte(s)) {
						raw = []byte(s)
					}
					visit(tool, raw)
				}
			}
			for _, k := range keysOf(v) {
				walk(v[k])
			}
		}
	}
	for lines.Scan() {
		var v any
		if json.Unmarshal(lines.Bytes(), &v) == nil {
			walk(v)
		}
	}
}

func keysOf(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func BenchmarkCommand(b *testing.B) {
	command := "cd /repo && sed -i 's/a/b/' x.go && cat > y.go <<'EOF'\n" + strings.Repeat("line of a file\n", 10_000) + "EOF\ngo test ./... 2>&1 | tail -5"
	args := codec.WriteObject([]codec.Member{{Name: "command", Value: codec.Quote(command)}})
	b.SetBytes(int64(len(args)))
	for b.Loop() {
		for range toolcall.Uses("bash", args) {
		}
	}
}
