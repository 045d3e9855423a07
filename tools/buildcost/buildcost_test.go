package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// graph is an action graph of Go 1.26, shortened: a package has several actions, and
// those that started no process have no times.
const graph = `[
{"ID":0,"Mode":"link-install","Package":"command-line-arguments","Target":"/tmp/x","TimeDone":"2026-11-22T11:42:25.311114101Z","Cmd":null},
{"ID":1,"Mode":"link","Package":"command-line-arguments","CmdReal":1438960449,"CmdUser":473986000,"CmdSys":78372000},
{"ID":3,"Mode":"build","Package":"example.com/tables/codec","NeedBuild":true,"CmdReal":11218262830,"CmdUser":5591638000,"CmdSys":487599000},
{"ID":4,"Mode":"build","Package":"example.com/tables","NeedBuild":true,"CmdUser":1000000000},
{"ID":5,"Mode":"build","Package":"runtime","NeedBuild":true,"CmdUser":6900000000,"CmdSys":200000000},
{"ID":6,"Mode":"build check cache","Package":"runtime"}
]`

// The dearest packages and modules come first, and processes count, not waiting.
func TestDearest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graph.json")
	if err := os.WriteFile(path, []byte(graph), 0o600); err != nil {
		t.Fatal(err)
	}
	actions, err := readActions(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cost{actions: actions, modules: map[string]string{
		"example.com/tables": "example.com/tables", "example.com/tables/codec": "example.com/tables", "runtime": std,
	}}
	var out strings.Builder
	c.printDearest(&out, 3)
	want := `dearest packages, in CPU-s
     7.1  runtime
     6.1  example.com/tables/codec
     1.0  example.com/tables
dearest modules, in CPU-s
     7.1  std
     7.1  example.com/tables
     0.6  (link)
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// The floor is a program of the three modules and of nothing of compactd.
func TestFloor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "floor.go")
	if err := os.WriteFile(path, []byte(floor), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := modulesOf(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"github.com/nats-io/nats-server/v2/server", "github.com/nats-io/nats.go", "go.etcd.io/bbolt"} {
		if modules[pkg] == "" {
			t.Errorf("the floor has no %s", pkg)
		}
	}
	for pkg := range modules {
		if strings.HasPrefix(pkg, "compactd/") {
			t.Errorf("the floor has %s", pkg)
		}
	}
}
