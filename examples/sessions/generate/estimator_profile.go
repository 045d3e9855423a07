package main

// estimatorProfile adds a profile to the token estimator, makes it selectable,
// and tests what the other profiles promised.
func estimatorProfile(a *agent) {
	const (
		core   = "internal/compaction/"
		events = "internal/events/"
		tokens = core + "tokens.go"
		policy = core + "policy.go"
		tests  = core + "tokens_test.go"
		main   = "cmd/worker/main.go"
	)
	a.user(`
		Our coding agents are underestimated: most of what they send is source code and logs, and for those the tokenizer makes a token of about three characters rather than four. I'd like a new profile for the estimator.

		What I want:

		- A profile "code": as default, but three units a token for results of tools, and a margin of 10 % instead of 15 %, since it is closer to begin with.
		- It must be selectable for a worker (a flag and an environment variable) and for one session (the policy of a turn, which exists).
		- Nothing may change for those who don't select it: not a token, not an outcome, not the hash of the default config. Show me that, don't argue it.

		Rules of the house, in case you don't know them:

		- Profiles are data. No stage, no function may branch on the name of a profile. Never.
		- No floats in internal/compaction, and no new imports there beyond the standard library's pure packages.
		- Errors name the valid values; don't write such a list by hand if it can be derived.
		- A user-visible change has a line in CHANGELOG.md, a decision has a page in docs/adr. Always run gofmt, go vet and all tests at the end.

		Read the whole package before you touch it, please. Tell me your plan first.
	`)
	a.say("I'll read the package from the top: its contract, the estimator, the policy.",
		bash("The package and its history", "wc -l internal/compaction/*.go && git log --stat --format='%h %s' -- internal/compaction"),
		read(core+"doc.go"), read(tokens), read(policy))
	a.say("How it came about says what was on the author's mind; the exported names say what others may rest on.",
		bash("The commit that made the package", "git show --format='%h %s%n%n%b' fb8f464 -- internal/compaction"),
		bash("The exported surface", "go doc -all ./internal/compaction"))
	a.say("", read(core+"entry.go"), read(core+"budget.go"), read(core+"decide.go"), read(core+"windows.go"), read(core+"windows/documented.json"), read(core+"windows/current.json"))
	a.say("Entries are measured in units, and a `Rate` turns units into tokens whenever they are needed. So a profile changes no ledger, only sums. I want to see who keeps sums.",
		read(core+"ledger.go"), read(core+"apply.go"), read(core+"turn.go"))
	a.say("`gauge.visible` is such a sum, and `measure` recomputes it when the config changes. Now the stages, which compare tokens.",
		read(core+"plan.go"), read(core+"prune.go"), read(core+"dedupe.go"), read(core+"truncate.go"), read(core+"draft.go"))
	a.say("", read(core+"repair.go"), read(core+"render.go"), read(core+"fileread.go"), read(core+"chunks.go"))
	a.say("Next, everything that names a profile, and what tests there are.",
		grep("[Pp]rofile", "."),
		read(core+"sessions_test.go"),
		bash("Tests of the package", "go test ./internal/compaction -v | tail -n 12; go test ./internal/compaction -list ."))
	a.say("What is measured comes from the readers of the three dialects. I want to see what they count as text, since that is what a profile weighs.",
		read(events+"format.go"), read(events+"block.go"), read(events+"openai.go"), read(events+"neurolink.go"), read(events+"codec.go"))
	a.say("There is one test, over real sessions that are not in this clone, so it is skipped. The estimator has none of its own. How the outcomes tell a config, and where it is stored:",
		read(events+"outcome.go"), read(events+"turn.go"), grep("Hash\\(\\)|PutConfig|ParseConfig", "."))
	a.say("And the command that has to offer it.",
		read(main), read("internal/worker/worker.go"), read("docs/adr/README.md"), read("docs/adr/0000-template.md"))
	a.say("", todos(
		"> Plan",
		"- Record what must not change: tokens of four profiles, hash of the default config",
		"- Profile code in tokens.go",
		"- Names in the error of a bad policy derived from the table",
		"- Flag --profile and COMPACTD_PROFILE",
		"- Tests of the estimator for all profiles",
		"- CHANGELOG.md, docs/adr",
		"- gofmt, vet, all tests"))
	a.say(`
		My plan:

		1. Before any change: a test that pins the tokens of the four profiles for given sizes, and the hash of the default config as a constant. It passes today; it must pass at the end without an edit.
		2. The profile is one line in ´Profiles´. ´Rate´ needs nothing: ´ResultUnits´ and ´MarginPercent´ are fields.
		3. ´Policy.Validate´ has the four names written out in its message. I'd derive them from the map, sorted.
		4. ´--profile´ sets ´Policy.Profile´ in ´flags.compaction´; ´NewConfig´ validates it.
		5. ´RulesVersion´ stays: the same log and the same settings are decided as before. A binary without the profile refuses a config that names it, by ´Validate´ in ´ParseConfig´.

		One question: ´made´ takes the smaller of ´TextUnits´ and ´ResultUnits´ for texts that compactd adds, so with the new profile a marker counts 25 tokens rather than 19. That is a ceiling by contract, so I'd leave it.
	`)
	a.user(`
		Yes to all of it, and leave the ceiling. Go ahead. For the pinned numbers: write down how each comes about in the test, so that the next one who reads it needn't take out a calculator.
	`)
	a.say("First what must not change. A look at the hash as it is today:",
		write(core+"scratch_test.go", code(`
			package compaction_test

			import "testing"

			func TestScratch(t *testing.T) { t.Logf("%s\n%s", defaultConfig(t).Hash(), defaultConfig(t).Text()[:400]) }
		`)),
		bash("The hash of the default config", "go test ./internal/compaction -run TestScratch -v; rm internal/compaction/scratch_test.go"))
	a.say("The table of numbers, with the way each comes about.",
		write(tests, code(`
			package compaction_test

			import (
				"testing"

				"compactd/internal/compaction"
			)

			// Estimates of 4,000 units of text: 1,000 base tokens, then provider and margin.
			// These are what users planned their windows with: a change is a new profile.
			func TestText(t *testing.T) {
				for _, test := range []struct {
					profile, provider string
					want              compaction.Tokens
				}{
					{"default", "openai", 1150},    // × 1.15
					{"default", "anthropic", 1415}, // × 1.23 × 1.15 = 1414.5, rounded up
					{"default", "Anthropic", 1415}, // names compare without case
					{"default", "mistral", 1449},   // × 1.26 × 1.15
					{"default", "nobody", 1150},    // counts as 100 %
					{"seed", "anthropic", 1415},
					{"current", "openai", 1050},    // × 1.05
					{"current", "anthropic", 1292}, // × 1.23 × 1.05 = 1291.5, rounded up
					{"blocks", "openai", 1330},     // × 1.33
					{"blocks", "anthropic", 1330},  // the provider does not count
				} {
					rate := compaction.NewRate(compaction.Profiles[test.profile], test.provider)
					if got := rate.Text(4000); got != test.want {
						t.Errorf("%s, %s: %d tokens, want %d", test.profile, test.provider, got, test.want)
					}
				}
			}
		`)))
	a.say("", failing(bash("Before any change", "go test ./internal/compaction -run TestText")))
	a.say("Good that I checked: in `current` the 5 % are added to the provider's factor rather than multiplied, as the comment on the struct says: base × (1.23 + 0.05). The test must say what is, and say why.",
		edit(tests, "{\"current\", \"anthropic\", 1292}, // × 1.23 × 1.05 = 1291.5, rounded up", "{\"current\", \"anthropic\", 1280}, // × (1.23 + 0.05): the margin is added here, not multiplied"),
		readLines(tokens, 8, 50))
	a.say("", bash("Again", "gofmt -l internal/compaction; go test ./internal/compaction -run TestText -v"))
	a.say("Now the entries: texts, results, calls, images, each as a message of one dialect. These go through `Measure`, so that the numbers are of the whole path.",
		read(events+"message.go"), read(events+"anthropic.go"),
		bash("Append the test of entries", part(`cat >> internal/compaction/tokens_test.go <<'EOF'

// entryTokens estimates one message of Anthropic's dialect.
func entryTokens(t *testing.T, profile, raw string) (sum compaction.Tokens) {
	t.Helper()
	m, err := events.Anthropic.Read(events.Raw(raw))
	if err != nil {
		t.Fatal(err)
	}
	rate := compaction.NewRate(compaction.Profiles[profile], "openai")
	for _, e := range compaction.Measure(m, compaction.Entry{Seq: 1, Turn: 1}) {
		sum += rate.Entry(&e)
	}
	return sum
}

// Estimates of whole messages for a provider of factor 1, by profile.
func TestEntry(t *testing.T) {
	x300 := strings.Repeat("x", 300)
	for _, test := range []struct {
		name, raw string
		want      map[string]compaction.Tokens
	}{
		{"300 units of text", ´{"role":"user","content":"´ + x300 + ´"}´, map[string]compaction.Tokens{
			"default": 91,  // 4 + 75 × 1.15
			"seed":    91,
			"current": 83,  // 4 + 75 × 1.05
			"blocks":  112, // 12 + 75 × 1.33
		}},
		{"300 units of a result", ´{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"´ + x300 + ´"}]}´, map[string]compaction.Tokens{
			"default": 91,
			"seed":    91,
			"current": 83,
			"blocks":  236, // 12 + 24 + 150 × 1.33
		}},
		{"a call", ´{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"read","input":{"path":"internal/a.go"}}]}´, map[string]compaction.Tokens{
			"default": 20,
			"seed":    4, // the reference forgets calls
			"current": 4,
			"blocks":  55,
		}},
		{"an image", ´{"role":"user","content":[{"type":"image","source":{}}]}´, map[string]compaction.Tokens{
			"default": 1028, "seed": 1028, "current": 1028, "blocks": 2012,
		}},
	} {
		for _, profile := range slices.Sorted(maps.Keys(test.want)) {
			if got := entryTokens(t, profile, test.raw); got != test.want[profile] {
				t.Errorf("%s, %s: %d tokens, want %d", test.name, profile, got, test.want[profile])
			}
		}
	}
}
EOF`)),
		edit(tests, "import (\n\t\"testing\"\n\n\t\"compactd/internal/compaction\"\n)", "import (\n\t\"maps\"\n\t\"slices\"\n\t\"strings\"\n\t\"testing\"\n\n\t\"compactd/internal/compaction\"\n\t\"compactd/internal/events\"\n)"))
	a.say("", failing(bash("Run it", "gofmt -w internal/compaction/tokens_test.go && go test ./internal/compaction -run 'TestText|TestEntry'")))
	a.say("The calls are where I guessed. `{\"path\":\"internal/a.go\"}` has 24 units, 12 base tokens at two units each, and the name `read` one more: 13 × 1.15 rounds to 15, with 4 for the message 19; for blocks 12 + 24 + 18. I had counted a character too many.",
		edit(tests, "\"default\": 20,\n", "\"default\": 19, // 4 + (1 for the name + 12 for 24 units of JSON) × 1.15\n"),
		edit(tests, "\"blocks\":  55,\n", "\"blocks\":  54, // 12 + 24 + 13 × 1.33\n"))
	a.say("", bash("And now", "gofmt -w internal/compaction/tokens_test.go; go test ./internal/compaction -run 'TestText|TestEntry' -v && go vet ./internal/compaction"),
		read(tests))
	a.say("The ground is laid; all of it passes on unchanged code. Now the profile itself, and the message that lists the names.",
		edit(tokens, "\t\"blocks\":  {TextUnits: 4, ResultUnits: 2,", "\t\"code\":    {TextUnits: 4, ResultUnits: 3, JSONUnits: 2, PerMessage: 4, PerConversation: 24, PerImage: 1024, MarginPercent: 110, ByProvider: true},\n\t\"blocks\":  {TextUnits: 4, ResultUnits: 2,"),
		edit(tokens, "// release, blocks the estimator of an agent that counts per block; default is\n// seed with the arguments of tool calls counted, which the reference forgets.\n",
			"// release, blocks the estimator of an agent that counts per block; default is\n// seed with the arguments of tool calls counted, which the reference forgets; code\n// is default for agents whose tools return source code and logs, of which a token\n// holds three units rather than four.\n"),
		edit(policy, "check(known, \"profile is none of blocks, current, default, seed\")", "check(known, \"profile is none of %s\", strings.Join(slices.Sorted(maps.Keys(Profiles)), \", \"))"))
	a.say("", failing(bash("Build", "go vet ./internal/compaction")))
	a.say("The imports, both from the standard library and pure.",
		edit(policy, "\t\"errors\"\n\t\"fmt\"\n\t\"strings\"\n", "\t\"errors\"\n\t\"fmt\"\n\t\"maps\"\n\t\"slices\"\n\t\"strings\"\n"))
	a.say("", bash("Build and run", "gofmt -l internal/compaction; go vet ./internal/compaction && go test ./internal/compaction"),
		read(tokens), read(policy))
	a.say("The numbers of the new profile join the tables, and a test for the policy: the names in the error, a session's own policy, and the hash that must not move.",
		edit(tests, "\t\t{\"blocks\", \"openai\", 1330},", "\t\t{\"code\", \"openai\", 1100},       // × 1.10\n\t\t{\"code\", \"anthropic\", 1353},    // × 1.23 × 1.10\n\t\t{\"blocks\", \"openai\", 1330},"),
		write(core+"policy_test.go", code(`
			package compaction_test

			import (
				"maps"
				"slices"
				"strings"
				"testing"

				"compactd/internal/compaction"
				"compactd/internal/events"
			)

			// The hash of the default config names the decisions of every worker that was
			// started without options: it changes with the rules only.
			func TestDefaultHash(t *testing.T) {
				const want = "0000000000000000"
				if got := defaultConfig(t).Hash(); got != want {
					t.Errorf("the hash is %s, was %s", got, want)
				}
			}

			// A session may choose any profile; a wrong name is answered with the right ones.
			func TestProfileOfPolicy(t *testing.T) {
				for name := range compaction.Profiles {
					p, err := compaction.DefaultPolicy().With(events.Raw(´{"profile":"´ + name + ´"}´))
					if err != nil || p.Profile != name {
						t.Errorf("%s: %v", name, err)
					}
				}
				_, err := compaction.DefaultPolicy().With(events.Raw(´{"profile":"Code"}´))
				if events.CodeOf(err) != events.CodeBadPolicy {
					t.Fatalf("got %v", err)
				}
				for _, name := range slices.Sorted(maps.Keys(compaction.Profiles)) {
					if !strings.Contains(err.Error(), name) {
						t.Errorf("%q does not name %s", err, name)
					}
				}
			}
		`)))
	a.say("", failing(bash("The placeholder must fail and tell the hash", "go test ./internal/compaction -run 'TestDefaultHash|TestProfileOfPolicy|TestText'")))
	a.say("I take the hash from the run before my change, not from this one: a pin that is copied from the changed code pins nothing. They are the same, so nothing moved.",
		bash("Fill in the hash of the unchanged code", `git stash -q -u && cat > internal/compaction/scratch_test.go <<'EOF'
package compaction_test

import "testing"

func TestScratch(t *testing.T) { t.Log(defaultConfig(t).Hash()) }
EOF
hash=$(go test ./internal/compaction -run TestScratch -v | grep -oE '[0-9a-f]{16}'); rm internal/compaction/scratch_test.go; git stash pop -q
sed -i "s/0000000000000000/$hash/" internal/compaction/policy_test.go && echo "$hash"`))
	a.say("", bash("With the hash of the old code", "gofmt -w internal/compaction/tokens_test.go && go test ./internal/compaction && gofmt -l internal/compaction"),
		read(core+"policy_test.go"),
		todos(
			"x Plan",
			"x Record what must not change: tokens of four profiles, hash of the default config",
			"x Profile code in tokens.go",
			"x Names in the error of a bad policy derived from the table",
			"> Flag --profile and COMPACTD_PROFILE",
			"- Tests of the estimator for all profiles",
			"- CHANGELOG.md, docs/adr",
			"- gofmt, vet, all tests"))
	a.say("The flag. It has no default of its own: an empty one leaves the policy's.",
		edit(main, part("\tDisableCompaction bool   ´env"), part("\tProfile           string ´env:\"COMPACTD_PROFILE\" placeholder:\"NAME\" help:\"How tokens are estimated: ${profiles} (default).\"´\n\tDisableCompaction bool   ´env")),
		edit(main, "\tp.Enabled = !f.DisableCompaction\n", "\tp.Enabled = !f.DisableCompaction\n\tp.Profile = cmp.Or(f.Profile, p.Profile)\n"))
	a.say("", failing(bash("The variable of the help is not given yet", "go run ./cmd/worker --help 2>&1 | grep ^panic:; exit ${PIPESTATUS[0]}")))
	a.say("As expected: kong wants the variable. It comes from the table, too.",
		edit(main, "kong.Vars{\"version\": version, \"logFormat\": logFormat}", "kong.Vars{\"version\": version, \"logFormat\": logFormat, \"profiles\": strings.Join(slices.Sorted(maps.Keys(compaction.Profiles)), \", \")}"),
		edit(main, "\t\"fmt\"\n\t\"os\"\n\t\"os/signal\"\n\t\"path/filepath\"\n\t\"syscall\"\n", "\t\"fmt\"\n\t\"maps\"\n\t\"os\"\n\t\"os/signal\"\n\t\"path/filepath\"\n\t\"slices\"\n\t\"strings\"\n\t\"syscall\"\n"))
	a.say("", bash("The help, and a build", "gofmt -l cmd; go vet ./cmd/... && go run ./cmd/worker --help"),
		read(main))
	a.say(`
		´--profile´ is there and its help names the profiles. To see the effect rather than believe it, a session that is decided under each profile, in the core: sixty turns of reads and logs in a small window. It doubles as the test that every profile keeps the promises of the package: a compaction never grows, stays valid for its provider, and leaves a ledger that says what the outcome said.
	`,
		write(core+"profiles_test.go", code(`
			package compaction_test

			import (
				"fmt"
				"maps"
				"slices"
				"strings"
				"testing"

				"compactd/internal/compaction"
				"compactd/internal/events"
			)

			// codingTurn is a turn of an agent that reads a file and runs its tests.
			func codingTurn(n int, model string) string {
				file := strings.Repeat(fmt.Sprintf("\tif err := step%d(); err != nil {\n", n), 20)
				log := strings.Repeat(fmt.Sprintf("--- PASS: TestStep%d (0.00s)\n", n), 12)
				return fmt.Sprintf(´{"turn":%d%s,"messages":[´+
					´{"role":"user","content":"step %d, please"},´+
					´{"role":"assistant","content":[{"type":"tool_use","id":"r%d","name":"Read","input":{"file_path":"step%d.go"}},{"type":"tool_use","id":"b%d","name":"Bash","input":{"command":"go test"}}]},´+
					´{"role":"user","content":[{"type":"tool_result","tool_use_id":"r%d","content":%q},{"type":"tool_result","tool_use_id":"b%d","content":%q}]},´+
					´{"role":"assistant","content":"done"}]}´, n, model, n, n, n%4, n, n, file, n, log)
			}

			// Under every profile a session is compacted in time, to a history that is valid
			// and no larger than told.
			func TestProfilesKeepThePromises(t *testing.T) {
				for _, name := range slices.Sorted(maps.Keys(compaction.Profiles)) {
					p := compaction.DefaultPolicy()
					p.Profile = name
					c, err := compaction.NewConfig(p, compaction.DefaultWindows())
					if err != nil {
						t.Fatal(err)
					}
					l := compaction.NewLedger(events.Address{Tenant: "t", Session: "s"})
					texts := map[compaction.Seq][]events.Message{}
					compactions, first := 0, int64(0)
					for n := 1; n <= 60; n++ {
						model := ""
						if n == 1 {
							model = ´,"model":{"provider":"anthropic","name":"claude-sonnet-4","context_window":16000}´
						}
						turn, msgs, err := compaction.ReadTurn(l, []byte(codingTurn(n, model)), compaction.Seq(n))
						if err != nil {
							t.Fatal(err)
						}
						texts[compaction.Seq(n)] = msgs
						outs := compaction.Decide(l, turn, c)
						compaction.Apply(l, turn, outs, c)
						for _, o := range outs {
							b, ok := o.Body.(*events.Compacted)
							if !ok || o.View == nil {
								continue
							}
							if compactions++; first == 0 {
								first = b.Through.Turn
							}
							if b.TokensAfter >= b.TokensBefore || l.Budget() != b.Budget {
								t.Errorf("%s, turn %d: %d -> %d, ledger %+v", name, n, b.TokensBefore, b.TokensAfter, l.Budget())
							}
							raw, err := compaction.Render(o.View, func(s compaction.Seq) ([]events.Message, error) { return texts[s], nil })
							if err != nil {
								t.Fatal(err)
							}
							if v := events.Validate(events.Anthropic, raw); len(v) > 0 {
								t.Errorf("%s, turn %d: %v", name, n, v)
							}
						}
					}
					t.Logf("%-8s %d compactions, the first at turn %d", name, compactions, first)
					if compactions < 2 {
						t.Errorf("%s: %d compactions in 60 turns", name, compactions)
					}
				}
			}
		`)))
	a.say("", bash("Each profile on the same session", "gofmt -l internal/compaction; go vet ./internal/compaction && go test ./internal/compaction -run TestProfilesKeep -v"))
	a.say(`
		Every profile keeps them, and the new one compacts earlier than default, as it should for a session of results:

		- [x] profile ´code´, one line of data
		- [x] names derived, in the error and in the help
		- [x] ´--profile´ / ´COMPACTD_PROFILE´
		- [x] numbers of the four old profiles and the hash pinned on the unchanged code
		- [ ] CHANGELOG.md and docs/adr
		- [ ] all tests
	`)
	a.user(`
		Very good. Before the paperwork, two things I want checked, because support will ask me:

		1. A session switches its profile in the middle, by the policy of a later turn. Does the next decision use the new numbers for the whole history, or only for what comes? And after a restart of the worker, is it the same? Read it, then show it in a test.
		2. Somebody rolls back to a binary without the profile, with a stored config that names it. What exactly happens, which words does the operator see?

		Don't change behaviour for either; I want to know.
	`)
	a.say("For the first: `take` in apply.go, `use` and `measure` in ledger.go; for the restart `record` in the worker's decider and how recorded outcomes are applied.",
		read(core+"apply.go"), read(core+"ledger.go"), read("internal/worker/decider.go"), read("internal/worker/partition.go"))
	a.say("For the second: where a stored config is read at all.",
		grep("ParseConfig|GetConfig|PutConfig|ConfigAt", "."),
		read("internal/broker/topology.go"), read("internal/broker/bodies.go"))
	a.say("", bash("The test of configs in the broker", "grep -n -B3 -A32 'func TestConfig' internal/broker/log_test.go"),
		read("internal/worker/worker_test.go"))
	a.say(`
		What the code says:

		1. ´take´ stores the override and calls ´measure´ when it changed, and ´measure´ sums the whole visible history with the new rate. So a switch holds for everything at once. After a restart the same: the replay applies the same turns, the override with them.
		2. ´PutConfig´ stores the text under its hash when a worker starts. ´ParseConfig´ exists, but nothing calls it yet: a worker starts with the config of its own flags. A binary without the profile that is started with ´--profile code´ says that the profile is none of its names and ends with code 1; started without, it runs with default, and what was told stays told.

		The first as a test in the core: the budget after the switch must be that of a session that used the profile from its first turn.
	`,
		bash("Append the test of a switch", part(`cat >> internal/compaction/profiles_test.go <<'EOF'

// A session that switches its profile is estimated as if it had used it always.
func TestSwitchOfProfile(t *testing.T) {
	budget := func(policies ...string) events.Budget {
		l := compaction.NewLedger(events.Address{Tenant: "t", Session: "s"})
		for i, policy := range policies {
			extra := ""
			if i == 0 {
				extra = ´,"model":{"provider":"anthropic","name":"claude-sonnet-4","context_window":200000}´
			}
			if policy != "" {
				extra += ´,"policy":{"profile":"´ + policy + ´"}´
			}
			turn, _, err := compaction.ReadTurn(l, []byte(codingTurn(i+1, extra)), compaction.Seq(i+1))
			if err != nil {
				t.Fatal(err)
			}
			c := defaultConfig(t)
			compaction.Apply(l, turn, compaction.Decide(l, turn, c), c)
		}
		return l.Budget()
	}
	always, switched, never := budget("code", "", "", ""), budget("", "", "", "code"), budget("", "", "", "")
	if switched != always {
		t.Errorf("switched: %+v\nalways: %+v", switched, always)
	}
	if never == always {
		t.Error("the profile made no difference; the test shows nothing")
	}
}
EOF`)))
	a.say("", bash("Run it", "gofmt -l internal/compaction; go vet ./internal/compaction && go test ./internal/compaction -run 'TestSwitch|TestProfiles' -v"),
		read(core+"profiles_test.go"))
	a.say("It is as read. For the words of the second I ask the command itself: a name it doesn't know is what an old binary makes of `code`. Its log line has a time, so I print the error only.",
		failing(bash("What an operator sees for a profile that the binary does not know", "go build -o bin/ ./cmd/worker && bin/worker --profile code2 --data $TMPDIR/d --log-format json 2>&1 | grep -o '\"error\":\"[^\"]*\"'; exit ${PIPESTATUS[0]}")))
	a.say(`
		The answers, each shown:

		1. The new numbers hold for the whole history at once: ´TestSwitchOfProfile´; after a restart the same turns are applied again, so it is the same. A switch may therefore trigger a compaction with the very turn that brings it.
		2. The worker ends with exit code 1 and says which profiles it has, as printed above. Nothing stored is touched. Without the flag it starts, under the default profile.

		On to the paperwork.
	`,
		read("CHANGELOG.md"), read("docs/adr/README.md"), glob("docs/**/*.md"))
	a.say("",
		write("docs/adr/0001-profile-code.md", code(`
			# 0001: Agents that read code have a profile of their own

			- Status: accepted
			- Date: 2026-05-06

			## Context

			Estimates rest on four UTF-16 units a token. Source code and logs, which are most of what coding agents send as results of
			tools, hold about three. With the default profile such sessions were underestimated, and compacted late.

			## Decision

			A profile ´code´: as ´default´, with three units a token for results of tools and a margin of 10 % instead of 15 %, since the
			estimate is closer to begin with. It is chosen for a worker by ´--profile´ or ´COMPACTD_PROFILE´, for a session by the
			policy of a turn.

			The default stays. Windows have been planned with its numbers, and the hash of the default config names decisions that
			are stored.

			## Alternatives

			- **Three units in the default profile:** right for coding agents, wrong for those that talk, and it would change what is
			  told to everybody who upgrades.
			- **Finding out from the text:** a share of braces and digits would do, but an estimate that depends on more than sizes
			  cannot be taken again from a ledger, which holds no text.
			- **Counting with a tokenizer:** exact for one provider, and a dependency of the core. The usage that providers report
			  may correct estimates one day.

			## Consequences

			- Profiles stay data: nothing branches on a name. The lists in messages and in the help come from the table.
			- A switch of profile holds for a session's whole history at once.
			- A binary that lacks the profile refuses to start with it, and says which it has.
			- ´RulesVersion´ stays: the same log and settings are decided as before.
		`)),
		edit("CHANGELOG.md", "### Added\n\n", "### Added\n\n- A profile for the estimator, code, for agents whose tools return source code and logs: --profile, COMPACTD_PROFILE, or the policy of a turn.\n"))
	a.say("", bash("Everything", "gofmt -l . ; go vet ./... && go test ./... && git status --short"),
		bash("The change outside of tests", "git diff -- '*.go' ':!*_test.go'"),
		read(tokens))
	a.say(`
		The paperwork is done and all tests pass. Outside of tests the change is one line of data with its comment, the derived list of names, and the flag:

		- [x] CHANGELOG.md and docs/adr/0001-profile-code.md
		- [x] gofmt, vet, all tests
	`)
	a.user(`
		Thank you. One more round, since this is the first profile that somebody adds: please check that the four others are described correctly wherever they are described, comments included, against what the code computes. I remember that "current" confused you at first; it will confuse others. Look at every comment in the package that speaks about tokens, units, margins, ceilings or rounding. Correct comments only, no code. And do the numbers of internal/replay's report mean what its table says?
	`)
	a.say("Every line that speaks of these, first.",
		grep("(?i)//.*(token|unit|margin|ceiling|round)", "internal/compaction"),
		read(tokens), read(core+"entry.go"))
	a.say("", read(core+"budget.go"), read(core+"draft.go"), read(core+"truncate.go"), read(core+"decide.go"))
	a.say("The files of the second half of the list, whole, since a comment is right or wrong only beside its code.",
		read(core+"plan.go"), read(core+"prune.go"), read(core+"dedupe.go"), read(policy))
	a.say("", read(core+"ledger.go"), read(core+"render.go"), read(core+"repair.go"), read(core+"windows.go"))
	a.say("The outside views of the numbers: the report of a replay, the outcomes, the usage of a provider, and the reader of transcripts.",
		read("internal/replay/report.go"), read("internal/replay/replay.go"), read(events+"usage.go"), read("internal/transcript/transcript.go"))
	a.say(`
		The report is right: ´Before´ and ´After´ are ´tokens_before´ and ´tokens_after´ of the outcome, both of the whole input with system and tools, estimated under the session's profile. Nothing in the table claims more.

		Two comments can be better:

		- On ´MarginPercent, AddPercent´: the formula is right, but nobody reads it as "added to the provider's factor". A second sentence helps.
		- On ´Profiles´: "current its newer release" does not say in what it differs.
	`,
		edit(tokens, "\t// The estimate is base × (provider × MarginPercent / 100 + AddPercent) / 100.\n", "\t// The estimate is base × (provider × MarginPercent / 100 + AddPercent) / 100:\n\t// MarginPercent multiplies the provider's factor, AddPercent is added to it.\n"),
		edit(tokens, "current its newer\n// release,", "current its newer\n// release with 5 % added in place of a margin,"))
	a.say("", failing(bash("Comments only?", "git diff internal/compaction/tokens.go | grep -E '^[+-][^+-]' | grep -vE '^[+-]\\s*//' && exit 1")),
		bash("The diff of the file", "git diff internal/compaction/tokens.go"))
	a.say("The check was naive: the file also has the line of the new profile, which is meant. The diff shows comments and that one line. The first lines of the comment are too long now; I wrap it anew.",
		bash("The comment as it is", "grep -n -A12 '^// Profiles by name' internal/compaction/tokens.go"))
	a.say("",
		edit(tokens, "// Profiles by name. seed is the reference as documented, current its newer\n// release with 5 % added in place of a margin, blocks the estimator of an agent that counts per block; default is\n// seed with the arguments of tool calls counted, which the reference forgets; code\n// is default for agents whose tools return source code and logs, of which a token\n// holds three units rather than four.\n",
			"// Profiles by name. seed is the reference as documented, current its newer\n// release with 5 % added in place of a margin, blocks the estimator of an agent\n// that counts per block; default is seed with the arguments of tool calls counted,\n// which the reference forgets; code is default for agents whose tools return source\n// code and logs, of which a token holds three units rather than four.\n"))
	a.say("", bash("The last run", "gofmt -l . ; go vet ./... && go test ./... && go test ./internal/compaction -v | grep -v '^=== '"),
		bash("All that changed", "git status --short && git diff --stat"),
		read(tokens), read(tests),
		todos(
			"x Plan",
			"x Record what must not change: tokens of four profiles, hash of the default config",
			"x Profile code in tokens.go",
			"x Names in the error of a bad policy derived from the table",
			"x Flag --profile and COMPACTD_PROFILE",
			"x Tests of the estimator for all profiles",
			"x CHANGELOG.md, docs/adr",
			"x Comments about tokens against the code",
			"x gofmt, vet, all tests"))
	a.say(`
		Finished:

		- [x] profile ´code´ with its flag, its environment variable and its page in docs/adr
		- [x] the other profiles and the default hash are pinned by numbers taken before the change
		- [x] a switch in the middle of a session, shown for the whole history
		- [x] two comments in tokens.go say what the code computes; no other comment was wrong
		- [x] replay's report says what its numbers are

		gofmt and vet are quiet, all tests pass. Nothing branches on a name of a profile.
	`)
}
