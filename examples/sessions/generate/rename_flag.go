package main

// renameFlag renames a flag of both commands and keeps the old name working.
func renameFlag(a *agent) {
	const (
		publisher = "cmd/publisher/main.go"
		worker    = "cmd/worker/main.go"
		demo      = "scripts/demo"
	)
	a.user(`
		Please rename the flag --nats of both commands to --server. People keep asking whether it starts a NATS server or connects to one.

		- The old name must go on working, in both commands; nobody's unit file may break. It should not show in --help, though.
		- NATS_URL stays as it is. Never rename an environment variable in passing.
		- scripts/demo uses the new name.
		- The JSON log line "ready" keeps its field nats: scripts/demo reads it, and so do others.
	`)
	a.say("I'll find every use of the name first, so that nothing is left behind.",
		bash("All mentions of the flag and of its field", "grep -rnE -e '--nats|name:\"nats\"|\\.NATS\\b' --include='*' . | grep -v '^./.git/'"),
		glob("cmd/**/*.go"))
	a.say("Two commands, one script, and the example text of the worker. I'll read both main files.",
		read(publisher),
		read(worker))
	a.say("", todos(
		"> See what kong offers for a second name of a flag",
		"- Rename it in cmd/publisher",
		"- Rename it in cmd/worker, with the example in its help",
		"- scripts/demo",
		"- CHANGELOG.md"))
	a.say("kong has aliases, but I want to see whether they show in the help.",
		bash("How this version of kong treats aliases", "dir=$(go list -m -f '{{.Dir}}' github.com/alecthomas/kong) && grep -n 'Aliases' $dir/tag.go $dir/help.go $dir/model.go $dir/context.go | sed \"s|$dir/||\""),
		bash("The help as it is", "go run ./cmd/publisher --help"))
	a.say("Aliases of flags are matched when parsing and are not printed: just what is wanted. The publisher first.",
		edit(publisher, part("\tNATS    string           ´name:\"nats\" env:\"NATS_URL\""), part("\tServer  string           ´aliases:\"nats\" env:\"NATS_URL\"")))
	a.say("", failing(bash("Build to find the uses of the field", "go build ./cmd/publisher")))
	a.say("One use, as the search said.",
		edit(publisher, "URL: f.NATS,", "URL: f.Server,"),
		failing(bash("Try a wrong name, the new one and the old one", "go build -o bin/ ./cmd/publisher && bin/publisher --server nats://127.0.0.1:1 --version && bin/publisher --nats nats://127.0.0.1:1 --version && bin/publisher --sever x watch 2>&1 | tail -n 1; exit ${PIPESTATUS[0]}")))
	a.say("New and old name are taken, and the wrong one gets a useful hint. The help should not mention the old one.",
		bash("Help of the publisher", "bin/publisher --help"),
		read(publisher))
	a.say("Now the worker. Its flag has no default: absent means that a server is embedded, and the help has to say so still.",
		edit(worker, part("\tNATS  string ´name:\"nats\" env:\"NATS_URL\" placeholder:\"URL\" help:\"Server to connect to. Absent: one is embedded.\"´\n\tCreds string ´env:\"COMPACTD_CREDS\" type:\"existingfile\" placeholder:\"FILE\" help:\"Credentials (.creds) for --nats.\"´"),
			part("\tServer string ´aliases:\"nats\" env:\"NATS_URL\" placeholder:\"URL\" help:\"NATS server to connect to. Absent: one is embedded.\"´\n\tCreds  string ´env:\"COMPACTD_CREDS\" type:\"existingfile\" placeholder:\"FILE\" help:\"Credentials (.creds) for --server.\"´")),
		edit(worker, "worker --nats nats://broker:4222", "worker --server nats://broker:4222"),
		failing(edit(worker, "f.NATS", "f.Server")))
	a.say("Two uses in the worker. Both are meant.",
		editAll(worker, "f.NATS", "f.Server"))
	a.say("", bash("Build, vet, format", "go build -o bin/ ./cmd/... && go vet ./cmd/... && gofmt -l cmd; bin/worker --help"),
		read(worker))
	a.say("The script is next.",
		read(demo))
	a.say("It reads the field nats of the log line ready, which stays. Only the call of the publisher changes.",
		edit(demo, "bin/publisher --nats \"$url\"", "bin/publisher --server \"$url\""),
		bash("No other mention is left", "grep -rnE -e '--nats|\\.NATS\\b' . --include='*' --exclude-dir=.git --exclude-dir=bin; echo \"exit $?\""),
		todos(
			"x See what kong offers for a second name of a flag",
			"x Rename it in cmd/publisher",
			"x Rename it in cmd/worker, with the example in its help",
			"x scripts/demo",
			"> CHANGELOG.md"))
	a.say(`
		The name is changed in both commands and in the script:

		- [x] ´--server´ is the name, ´--nats´ is an alias that --help does not show
		- [x] ´NATS_URL´ and the log field ´nats´ are as they were
		- [x] scripts/demo uses the new name
		- [ ] CHANGELOG.md

		I have only tried the flags with --version so far. Do you want a test that pins the alias? There are none for the commands yet.
	`)
	a.user(`
		Yes, a small one for each command: parse the old and the new name and compare the field. Don't start any server in it, and don't run a subprocess. And put both into files of their own, main_test.go.

		While you are at it: the help of the publisher says "Server to connect to", the worker "NATS server to connect to". They must say the same, the worker's words are better.
	`)
	a.say("The help text first, then the tests. `flags` can be parsed alone with kong, without running a command, but the publisher needs a command on its line.",
		edit(publisher, "help:\"Server to connect to (${default}).\"", "help:\"NATS server to connect to (${default}).\""),
		write("cmd/publisher/main_test.go", code(`
			package main

			import (
				"testing"

				"github.com/alecthomas/kong"
			)

			// The flag was called --nats once, and unit files still say so.
			func TestServerFlag(t *testing.T) {
				for _, name := range []string{"--server", "--nats"} {
					var f flags
					k := kong.Must(&f, kong.Vars{"version": "test"})
					if _, err := k.Parse([]string{name, "nats://h:1", "watch"}); err != nil {
						t.Fatal(err)
					}
					if f.Server != "nats://h:1" {
						t.Errorf("%s: the server is %q", name, f.Server)
					}
				}
			}
		`)),
		write("cmd/worker/main_test.go", code(`
			package main

			import (
				"testing"

				"github.com/alecthomas/kong"
			)

			// The flag was called --nats once, and unit files still say so.
			func TestServerFlag(t *testing.T) {
				for _, name := range []string{"--server", "--nats"} {
					var f flags
					k := kong.Must(&f, kong.Vars{"version": "test"})
					if _, err := k.Parse([]string{name, "nats://h:1"}); err != nil {
						t.Fatal(err)
					}
					if f.Server != "nats://h:1" {
						t.Errorf("%s: the server is %q", name, f.Server)
					}
				}
			}
		`)))
	a.say("", failing(bash("Run both", "go test ./cmd/...")))
	a.say("The worker's flags use a variable for the default of the log format, so kong wants it. I'll give it one, as main does.",
		edit("cmd/worker/main_test.go", "kong.Vars{\"version\": \"test\"}", "kong.Vars{\"version\": \"test\", \"logFormat\": \"json\"}"))
	a.say("", bash("Run both again", "go test -v ./cmd/... && go vet ./cmd/... && gofmt -l cmd"),
		read("CHANGELOG.md"))
	a.say("Both names are pinned. Now the line in the changelog, and a check that the tests would notice: without the alias they must fail.",
		edit("CHANGELOG.md", "## Unreleased\n\n", "## Unreleased\n\n### Changed\n\n- The flag --nats of worker and publisher is called --server; the old name goes on working.\n\n"),
		edit(publisher, part("´aliases:\"nats\" env"), part("´env")))
	a.say("", failing(bash("The publisher's test without the alias", "go test ./cmd/publisher")))
	a.say("It notices. The alias goes back in.",
		edit(publisher, part("\tServer  string           ´env"), part("\tServer  string           ´aliases:\"nats\" env")))
	a.say("", bash("Everything once more", "gofmt -l cmd; go vet ./cmd/... && go test ./cmd/... && git diff --stat"),
		read(publisher),
		todos(
			"x See what kong offers for a second name of a flag",
			"x Rename it in cmd/publisher",
			"x Rename it in cmd/worker, with the example in its help",
			"x scripts/demo",
			"x CHANGELOG.md",
			"x Tests for the old name"))
	a.say("The publisher reads well. One last look at the diff of the worker and of the script, since these are what people run.",
		bash("The diff of what people run", "git diff cmd/worker/main.go scripts/demo CHANGELOG.md"))
	a.say(`
		Done. ´--server´ is the flag of both commands, ´--nats´ still works and is pinned by a test in each, the help texts agree, NATS_URL and the log field are unchanged. I saw the test of the publisher fail without the alias. bin/ is ignored by git, so the binaries I tried things with leave no trace.
	`)
}
