package toolcall_test

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/toolcall"
	"compactd/internal/testkit/linear"
)

func argument(name string, value codec.Raw) codec.Raw {
	return codec.WriteObject([]codec.Member{{Name: name, Value: value}})
}

// listOf has n values that differ.
func listOf(n int, form string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(all, ",")
}

// wide are calls of a width that cost the most where something is not linear.
var wide = map[string]struct {
	tool string
	args func(n int) codec.Raw
}{
	"prefixes":    command(func(n int) string { return strings.Repeat("! ", n) }),
	"variables":   command(func(n int) string { return strings.Repeat("A=1 ", n) }),
	"directories": command(func(n int) string { return "cd /x;" + strings.Repeat("cd a;>b;", n) }),
	"subshells":   command(func(n int) string { return "cd /x;" + strings.Repeat("(cd a;", n) + strings.Repeat("<b)", n) }),
	"copies":      command(func(n int) string { return "cp " + strings.Repeat("a ", n) + "/" + strings.Repeat("d", 2*n) }),
	"restored":    command(func(n int) string { return "git checkout " + strings.Repeat("-- ", n) }),
	"redirected":  command(func(n int) string { return "cd /x;" + strings.Repeat("<a ", n) }),
	"documents":   command(func(n int) string { return strings.Repeat("<<a ", n) + "\n" + strings.Repeat("b\n", n) }),
	"substituted": command(func(n int) string { return strings.Repeat("$(", n) }),
	"quotes":      {"exec", func(n int) codec.Raw { return argument("input", codec.Quote("tools."+strings.Repeat(`\"`, n))) }},
	"commands": {"exec", func(n int) codec.Raw {
		return argument("input", codec.Quote("tools."+strings.Repeat(`cmd: "cat a"`, n)))
	}},
	"patch":     {"apply_patch", func(n int) codec.Raw { return argument("patch", codec.Quote(strings.Repeat("*** Add File: a\n", n))) }},
	"paths":     {"read_files", func(n int) codec.Raw { return codec.Raw(`{"files":[` + listOf(n, `"%06d"`) + `]}`) }},
	"objects":   {"read_files", func(n int) codec.Raw { return codec.Raw(`{"files":[` + listOf(n, `{"path":"%06d"}`) + `]}`) }},
	"members":   {"read_files", func(n int) codec.Raw { return codec.Raw(`{"files":{` + listOf(n, `"path":"%06d"`) + `}}`) }},
	"arguments": {"read_file", func(n int) codec.Raw { return codec.Raw(`{"path":"a",` + listOf(n, `"%06d":1`) + `}`) }},
}

func command(of func(n int) string) struct {
	tool string
	args func(n int) codec.Raw
} {
	return struct {
		tool string
		args func(n int) codec.Raw
	}{"bash", func(n int) codec.Raw { return argument("command", codec.Quote(of(n))) }}
}

// uses reads all uses of a call.
func uses(tool string, args codec.Raw) {
	for range toolcall.Uses(tool, args) {
	}
}

// A word, a path or a member of a call costs as much in a wide call as in a narrow one.
func TestLinear(t *testing.T) {
	const n, most = 4000, 2.5
	for name, c := range wide {
		inputs := [2]codec.Raw{c.args(n), c.args(4 * n)}
		for op, run := range map[string]func(string, codec.Raw){
			"file": func(tool string, args codec.Raw) { toolcall.File(tool, args) }, "uses": uses,
		} {
			r := linear.RatioOf(n, most, func(size int) linear.Cost {
				return linear.Of(1, func() { run(c.tool, inputs[size]) })
			})
			if r.Worst() > most {
				t.Errorf("%s, %s: %v", name, op, r)
			}
		}
	}
}

// A call that names a long directory once and many files in it has bounded paths.
func TestLongDirectory(t *testing.T) {
	const n, most = 50_000, 100 << 20
	dir := "/" + strings.Repeat("d", 4000)
	for name, line := range map[string]string{
		"reads":   "cd " + dir + ";" + strings.Repeat("<a;", n),
		"changes": "cd " + dir + ";" + strings.Repeat(">a;", n),
		"one":     "cd " + dir + ";cat " + strings.Repeat("a ", n),
		"moves":   "cd " + dir + ";" + strings.Repeat("cd .;", n),
		"copies":  "cp " + strings.Repeat("a ", n) + dir,
		"unnamed": "cp " + strings.Repeat("'\n' ", n) + dir,
	} {
		args := argument("command", codec.Quote(line))
		kept := 0
		cost := linear.Of(1, func() {
			toolcall.File("bash", args)
			for u := range toolcall.Uses("bash", args) {
				kept += len(u.Path)
			}
		})
		if cost.Bytes > most || kept > most {
			t.Errorf("%s: %d bytes of %d, and paths of %d", name, cost.Bytes, len(args), kept)
		}
	}
}

// Words in front of a command use no recursion: an exhausted stack ends the process.
func TestPrefixesTakeNoStack(t *testing.T) {
	const n, most = 200_000, 4 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it gives stacks back
	args := argument("command", codec.Quote(strings.Repeat("! sudo A=1 ", n)))
	before := stacks()
	uses("bash", args)
	if grown := stacks() - before; grown > most {
		t.Errorf("%d bytes of stack for %d words", grown, n)
	}
}

func stacks() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
