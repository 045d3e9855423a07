package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"compactd/internal/testkit/freeport"
)

// stubs stand for programs that a page may call and a test may not: the command's
// files and targets are looked up, nothing is run.
var stubs = map[string]string{
	"make":       "minutes, and this test is one of its targets",
	"go":         "minutes; programs and tests are built and run by make test. The agent is run: it is built with the programs",
	"npm":        "needs the network; examples/clients has a test that runs the agent",
	"pip":        "needs the network",
	"python":     "needs nats-py; so does the test of examples/clients that runs the agent",
	"nats":       "NATS' own tool, no part of the project",
	"docker":     "needs a daemon; make deploy-check reads the files",
	"kubectl":    "needs a cluster; make deploy-check reads the files",
	"systemctl":  "needs systemd; make deploy-check reads the unit, and stop stops the worker here",
	"journalctl": "needs systemd",
	"dpkg":       "writes into the system; make test-release installs the package below a directory",
	"install":    "writes into the system",
}

// workdir is where the commands of a page run.
type workdir struct {
	t       *testing.T
	dir     string
	environ []string
	places  *strings.Replacer // what the pages say is where on this machine
}

// newWorkdir writes the programs of a page, and the files that it names.
func newWorkdir(t *testing.T, programs string) workdir {
	t.Helper()
	dir := t.TempDir()
	abs, err := filepath.Abs(root)
	must(t, err)
	for _, shown := range []string{"deploy", "examples/sessions"} {
		must(t, os.CopyFS(filepath.Join(dir, shown), os.DirFS(filepath.Join(root, shown))))
	}
	files := map[string]string{
		"bin/worker":        fmt.Sprintf(workerStub, programs),
		"bin/publisher":     fmt.Sprintf(publisherStub, programs),
		"secrets/anthropic": "sk-none",
		"home/.claude/projects/-home-me-app/3f1c.jsonl": recorded,
	}
	for name := range stubs {
		files["stubs/"+name] = fmt.Sprintf(anyStub, abs, programs, agent)
	}
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	return workdir{dir: dir}
}

// at gives the page's servers free addresses.
func (f workdir) at(t *testing.T) *workdir {
	t.Helper()
	var free [4]string
	for i := range free {
		at, err := freeport.Address()
		must(t, err)
		free[i] = at
	}
	addr, http, broker, agents := free[0], free[1], free[2], free[3]
	f.t = t
	f.environ = []string{
		"PATH=" + f.dir + "/bin:" + f.dir + "/stubs:" + os.Getenv("PATH"), "HOME=" + f.dir + "/home", "RUN=" + f.dir, "URL=nats://" + addr, "BROKER=" + broker,
		"COMPACTD_LISTEN=" + addr, "COMPACTD_HTTP=" + http,
		"COMPACTD_ANTHROPIC_BASE_URL=http://127.0.0.1:1", "COMPACTD_ANTHROPIC_ATTEMPTS=1", // a model that is never there
	}
	f.places = strings.NewReplacer("127.0.0.1:4222", addr, "127.0.0.1:8223", http, "127.0.0.1:8224", agents, "broker:4222", broker,
		"/run/secrets/", f.dir+"/secrets/", "/var/lib/compactd", f.dir+"/var", "/tmp/try", f.dir+"/try")
	return &f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// workerStub starts what serves in the background, and returns when it is ready: the
// page's next command is that of another terminal. A worker before it is stopped. A
// page that speaks of an external server gets one.
const workerStub = `#!/bin/sh
real=%[1]s/worker
start() { # it is gone when NAME.gone is there
	name=$1
	shift
	rm -f "$RUN/$name.gone"
	: >"$RUN/$name.log"
	(
		"$real" "$@" --log-format json >>"$RUN/$name.log" 2>&1 &
		echo $! >"$RUN/$name.pid"
		wait
		: >"$RUN/$name.gone"
	) &
	until grep -q '"message":"ready"' "$RUN/$name.log"; do
		[ ! -e "$RUN/$name.gone" ] || { cat "$RUN/$name.log"; exit 1; }
		sleep 0.02
	done
}
case "$*" in
*$BROKER*) [ -e "$RUN/broker.log" ] || start broker --listen "$BROKER" --http off --data "$RUN/broker" ;;
esac
case "${1-}" in
policy | inspect | replay | doctor | ready | forget | completion | man | help | version | --help | --version) exec "$real" "$@" ;;
esac
if [ -e "$RUN/worker.pid" ]; then
	[ -e "$RUN/worker.gone" ] || kill -INT "$(cat "$RUN/worker.pid")"
	until [ -e "$RUN/worker.gone" ]; do sleep 0.02; done
fi
start worker "$@"
grep '"message":"ready"' "$RUN/worker.log"
`

const publisherStub = `#!/bin/sh
export NATS_URL=${NATS_URL:-$URL}
exec %[1]s/publisher "$@"
`

// agent is the example that pages run.
const agent = "examples/clients/go"

// anyStub looks up what a command names: files, packages, targets. Where a unit is
// stopped, the page's worker is.
const anyStub = `#!/bin/sh
root=%[1]s
name=$(basename "$0")
if [ "$name $*" = "go run ./%[3]s" ]; then
	NATS_URL=$URL exec %[2]s/$(basename %[3]s)
fi
if [ "$name" = make ]; then
	for a; do
		case $a in -* | *=*) ;; *) grep -q "^$a:" "$root/Makefile" || { echo "there is no target $a"; exit 1; } ;; esac
	done
fi
if [ "$name $1" = "systemctl stop" ] && [ -e "$RUN/worker.pid" ] && [ ! -e "$RUN/worker.gone" ]; then
	kill -INT "$(cat "$RUN/worker.pid")"
	until [ -e "$RUN/worker.gone" ]; do sleep 0.02; done
fi
for a; do
	case $a in
	/* | -* | *=*) ;;
	./* | *.py | *.yaml | *.service) [ -e "$a" ] || [ -e "$root/$a" ] || { echo "$name: there is no $a"; exit 1; } ;;
	esac
done
`

// recorded is a session of Claude Code.
const recorded = `{"type":"user","uuid":"1","sessionId":"3f1c","timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":"Fix it"}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"3f1c","timestamp":"2026-03-01T10:00:05Z",` +
	`"message":{"id":"msg_1","role":"assistant","model":"claude-sonnet-4-20250514","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":12,"output_tokens":3}}}
`
