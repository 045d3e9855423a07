package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

func files(env *workertest.Env, session string, page int) events.FilesResponse {
	env.T.Helper()
	var out events.FilesResponse
	if e := env.Request(events.SubjectFiles, fmt.Sprintf(`{"session":%q,"page":%d}`, session, page), &out); e != nil {
		env.T.Fatalf("files %s, page %d: %s %s", session, page, e.Code, e.Message)
	}
	return out
}

// The files that a session read and changed are listed, the last used first. A read before a
// later change is not restorable. Retracted turns do not count.
func TestFiles(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, "s1", workertest.CallsTurn(1, "read_file:/a.go", "read_file:/b.go", "bash:/no-file"))
	env.Publish(events.KindTurn, "s1", workertest.CallsTurn(2, "write_file:/a.go", "read_file:/c.go", "edit:/long/"+strings.Repeat("x", 5_000)))
	env.Publish(events.KindTurn, "s1", workertest.CallsTurn(3, "read_file:/b.go"))
	env.Publish(events.KindTurn, "s2", workertest.CallsTurn(1, "read_file:/other.go"))
	env.AwaitDecided()
	got := files(env, "s1", 1)
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
	env.Publish(events.KindTurn, "s1", []byte(strings.Replace(string(workertest.CallsTurn(2, "read_file:/d.go")), `"turn"`, `"replaces_from":2,"turn"`, 1)))
	env.AwaitDecided()
	got = files(env, "s1", 1)
	want.Unnamed, want.Through, want.Files = 0, got.Through, []events.File{
		{Path: "/d.go", Kind: events.FileRead, Turns: [2]int64{2, 2}, Reads: 1, Restorable: true},
		{Path: "/b.go", Kind: events.FileRead, Turns: [2]int64{1, 1}, Reads: 1, Restorable: true},
		{Path: "/a.go", Kind: events.FileRead, Turns: [2]int64{1, 1}, Reads: 1, Restorable: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a retraction (-want +got):\n%s", diff)
	}
	if got := files(env, "unknown", 7); got.Known || len(got.Files) != 0 || got.Page != 1 {
		t.Errorf("of an unknown session: %+v", got)
	}
	if e := env.Request(events.SubjectFiles, `{"session":"s1","page":2}`, nil); e == nil || e.Code != events.CodeOutOfRange {
		t.Errorf("a page beyond the last: %+v", e)
	}
}

// Many files are listed in pages, each once. Files whose turn has left the log are counted.
func TestFilesPages(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	var want []string
	first := uint64(0)
	for n := 1; n <= 5; n++ {
		var named []string
		for i := range 50 {
			named = append(named, fmt.Sprintf("read_file:/%d/%d.go", n, i))
		}
		seq := env.Publish(events.KindTurn, "s1", workertest.CallsTurn(n, named...))
		if n == 1 {
			first = seq
			continue
		}
		want = append(want, named...)
	}
	env.AwaitDecided()
	log, err := env.JS.Stream(t.Context(), "SESSIONS")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.DeleteMsg(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	var got []string
	unnamed := int64(0)
	for page := 1; page <= 3; page++ {
		f := files(env, "s1", page)
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
}
