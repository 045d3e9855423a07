package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"compactd/internal/broker/topology"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/freeport"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"publisher": main}) }

// The scripts show what a user of an agent sees, with a real worker on
// $ADDR, which is a free address.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "worker"), "compactd/cmd/worker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"until": until, "secure": secure, "trusted": trusted, "figures": figures, "shown": shown, "room": room},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			model := summarizetest.Start(t, func(summarizetest.Prompt) string {
				return "<summary>\nA log of retries.\n- the last one failed with EPIPE\n</summary>"
			})
			env.Setenv("MODEL", model.URL())
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("COMPACTD_HTTP", "off") // of the workers, which would meet at one port
			addr, err := freeport.Address()
			env.Setenv("ADDR", addr)
			env.Setenv("URL", "nats://"+addr)
			examples, wrong := filepath.Abs("../../examples/sessions")
			env.Setenv("EXAMPLES", examples)
			return errors.Join(err, wrong)
		},
	})
}

// room sets the bound of SESSIONS: room BYTES; -1 is none.
func room(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: room BYTES")
	}
	bytes, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	nc, err := nats.Connect(ts.Getenv("URL"))
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	s, err := js.Stream(context.Background(), topology.LogStream)
	ts.Check(err)
	c := s.CachedInfo().Config
	c.MaxBytes = bytes
	_, err = js.UpdateStream(context.Background(), c)
	ts.Check(err)
}

// until waits until a file matches, and runs a command again and again while it
// does not: until FILE REGEXP [COMMAND ARG...]
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until FILE REGEXP [COMMAND ARG...]")
	}
	file, want := ts.MkAbs(args[0]), regexp.MustCompile(args[1])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(file)
		if err == nil && want.Match(data) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not match %s:\n%s", args[0], want, data)
		}
		if len(args) > 2 {
			ts.Check(ts.Exec(args[2], args[3:]...))
		}
	}
}
