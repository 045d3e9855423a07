package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// calls is a session.turn of an Anthropic agent with tool calls, given as tool:path, and
// their results.
func calls(n int, named ...string) []byte {
	var uses, results []string
	for i, c := range named {
		tool, path, _ := strings.Cut(c, ":")
		uses = append(uses, fmt.Sprintf(`{"type":"tool_use","id":"c%d_%d","name":%q,"input":{"path":%q}}`, n, i, tool, path))
		results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"c%d_%d","content":"the content of %s"}`, n, i, path))
	}
	return fmt.Appendf(nil, `{"turn":%d,"model":{"provider":"anthropic","name":"claude-sonnet-4-20250514"},"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":[%s]},{"role":"user","content":[%s]}]}`,
		n, strings.Join(uses, ","), strings.Join(results, ","))
}

func (env *testEnv) files(session string, page int) events.FilesResponse {
	env.t.Helper()
	var out events.FilesResponse
	if e := env.request(events.SubjectFiles, fmt.Sprintf(`{"session":%q,"page":%d}`, session, page), &out); e != nil {
		env.t.Fatalf("files %s, page %d: %s %s", session, page, e.Code, e.Message)
	}
	return out
}

// The files that a session read and changed are listed, the last used first. A read before a
// later change is not restorable. Retracted turns do not count.
func TestFiles(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	stop := env.run("a", observe.Listener{})
	env.publish(events.KindTurn, "s1", calls(1, "read_file:/a.go", "read_file:/b.go", "bash:/no-file"))
	env.publish(events.KindTurn, "s1", calls(2, "write_file:/a.go", "read_file:/c.go", "edit:/long/"+strings.Repeat("x", 5_000)))
	env.publish(events.KindTurn, "s1", calls(3, "read_file:/b.go"))
	env.publish(events.KindTurn, "s2", calls(1, "read_file:/other.go"))
	env.awaitDecided()
	got := env.files("s1", 1)
	want := events.FilesResponse{
		V: 1, Known: true, Page: 1, Pages: 1, Unnamed: 1, Through: got.Through, Files: []events.File{
			{Path: "/b.go", Kind: events.FileRead, Turns: [2]int64{1, 3}, Reads: 2, Restorable: true},
			{Path: "/c.go", Kind: events.FileRead, Turns: [2]int64{2, 2}, Reads: 1, Restorable: true},
			{Path: "/a.go", Kind: events.FileChanged, Turns: [2]int64{1, 2}, Reads: 1, Changes: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Through.Turn != 3 {
		t.Errorf("through %+v (-want +got):\n%s", got.Through, diff)
	}
	env.publish(events.KindTurn, "s1", []byte(strings.Replace(string(calls(2, "read_file:/d.go")), `"turn"`, `"replaces_from":2,"turn"`, 1)))
	env.awaitDecided()
	got = env.files("s1", 1)
	want.Unnamed, want.Through, want.Files = 0, got.Through, []events.File{
		{Path: "/d.go", Kind: events.FileRead, Turns: [2]int64{2, 2}, Reads: 1, Restorable: true},
		{Path: "/b.go", Kind: events.FileRead, Turns: [2]int64{1, 1}, Reads: 1, Restorable: true},
		{Path: "/a.go", Kind: events.FileRead, Turns: [2]int64{1, 1}, Reads: 1, Restorable: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a retraction (-want +got):\n%s", diff)
	}
	if got := env.files("unknown", 7); got.Known || len(got.Files) != 0 || got.Page != 1 {
		t.Errorf("of an unknown session: %+v", got)
	}
	if e := env.request(events.SubjectFiles, `{"session":"s1","page":2}`, nil); e == nil || e.Code != events.CodeOutOfRange {
		t.Errorf("a page beyond the last: %+v", e)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// Many files are listed in pages, each once. Files whose turn has left the log are counted.
func TestFilesPages(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	stop := env.run("a", observe.Listener{})
	var want []string
	first := uint64(0)
	for n := 1; n <= 5; n++ {
		var named []string
		for i := range 50 {
			named = append(named, fmt.Sprintf("read_file:/%d/%d.go", n, i))
		}
		seq := env.publish(events.KindTurn, "s1", calls(n, named...))
		if n == 1 {
			first = seq
			continue
		}
		want = append(want, named...)
	}
	env.awaitDecided()
	log, err := env.js.Stream(t.Context(), "SESSIONS")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.DeleteMsg(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	var got []string
	unnamed := int64(0)
	for page := 1; page <= 3; page++ {
		f := env.files("s1", page)
		if f.Pages != 3 || f.Page != int64(page) {
			t.Errorf("page %d is %d of %d", page, f.Page, f.Pages)
		}
		for _, x := range f.Files {
			got = append(got, "read_file:"+x.Path)
		}
		unnamed += f.Unnamed
	}
	slices.Reverse(want)
	if diff := cmp.Diff(want, got); diff != "" || unnamed != 50 {
		t.Errorf("%d are unnamed (-want +got):\n%s", unnamed, diff)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
