package main

// anthropicDialect goes through how messages of Anthropic's API are read, written
// and measured, fills the gaps in the tests, and writes the mapping down.
func anthropicDialect(a *agent) {
	const (
		events     = "internal/events/"
		compaction = "internal/compaction/"
		blocks     = events + "anthropic_blocks_test.go"
		page       = "docs/format/anthropic.md"
	)
	a.user(`
		I want to be sure of our anthropic dialect before the first users send real traffic. Please go through how a message of the Messages API is read, kept, measured and written back, compare it with what the API can send today, and close the gaps with tests.

		Constraints, please keep them in mind to the end:

		1. Bytes that nobody edited must come back as they were. This is the one promise we can never break; if you find a case where it fails, stop and tell me.
		2. A block type that we don't know must stay in place and must not be an error. New block types appear all the time.
		3. Don't change what openai or neurolink do. If a helper is shared, its behaviour for the others stays the same, with a test that says so.
		4. No new dependencies. No floats in internal/compaction. Always run gofmt, go vet and the tests of every package that you touched before you say that something is done.
		5. Never edit anything under internal/events/testdata/v1: these are wire fixtures.
		6. New tests go to files of their own where that is readable; don't reformat what is there.

		Please begin with a survey and tell me what you find before you change anything. Keep a to-do list, I will look at it now and then.
	`)
	a.say("I'll start with the shape of the package and its history.",
		bash("Files and their sizes", "ls -R internal/events && wc -l internal/events/*.go"),
		bash("How the package came about", "git log --stat --format='%h %s' -- internal/events"),
		todos(
			"> Survey: how a message is read, kept, measured and written",
			"- Compare with the blocks the API has today",
			"- Report before changing anything",
			"- Tests for the gaps",
			"- Write the mapping down",
			"- gofmt, vet, tests of all packages touched"))
	a.say("Three commits. I'll look at what the last one changed here, and at the exported surface.",
		bash("The last change of the package", "git show --format='%h %s%n%n%b' 49ef94c -- internal/events ':!*_test.go' ':!*testdata*'"),
		bash("What others can see of it", "go doc -all ./internal/events"))
	a.say("The model of a message first, then the reader and writer of this dialect and what they share with the others.",
		read(events+"doc.go"), read(events+"message.go"), read(events+"anthropic.go"), read(events+"block.go"))
	a.say("`readContent` and `writeContent` carry most of the weight. Both rest on the walker.",
		read(events+"walk.go"), read(events+"codec.go"), read(events+"raw.go"), read(events+"format.go"))
	a.say("Now the other two dialects, to know what is shared and must stay as it is.",
		read(events+"openai.go"), read(events+"neurolink.go"))
	a.say("And what the tests say so far.",
		read(events+"anthropic_test.go"), read(events+"format_test.go"), read(events+"property_test.go"))
	a.say("", bash("The tests as they are, by name", "go test ./internal/events -v | grep -E '^(---|ok)'"),
		bash("What the tests don't reach", "go test ./internal/events -coverprofile=$TMPDIR/c.out >/dev/null && go tool cover -func=$TMPDIR/c.out | grep -v '100.0%'"))
	a.say("Coverage is nearly complete, so gaps are in the data rather than in the lines. The validator next: it is the other half of what we claim about this dialect.",
		read(events+"validate.go"), read(events+"validate_anthropic.go"), read(events+"validate_test.go"))
	a.say("How the parts are measured and rendered decides whether a mapping matters at all.",
		read(compaction+"entry.go"), read(compaction+"tokens.go"), read(compaction+"render.go"))
	a.say("", grep("PartImage|PartOther|PartThinking", "internal"),
		read(compaction+"draft.go"), read(compaction+"repair.go"))
	a.say("I'll try a few blocks of the current API on the reader, with a scratch test that I delete afterwards.",
		write(events+"scratch_test.go", code(`
			package events

			import "testing"

			func TestScratch(t *testing.T) {
				for _, block := range []string{
					´{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"x"}]}´,
					´{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"title":"t"}´,
					´{"type":"search_result","source":"https://e.example","title":"t","content":[{"type":"text","text":"found"}]}´,
					´{"type":"container_upload","file_id":"file_1"}´,
					´{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}´,
					´{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}´,
					´{"type":"mcp_tool_use","id":"mcptoolu_1","name":"n","server_name":"s","input":{}}´,
					´{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"a"}]}´,
					´{"type":"thinking","thinking":"hm","signature":"s"}´,
					´{"type":"redacted_thinking","data":"AAAA"}´,
				} {
					m, err := Anthropic.Read(Raw(´{"role":"user","content":[´ + block + ´]}´))
					if err != nil {
						t.Fatal(err)
					}
					p := m.Parts[0]
					t.Logf("kind %d, text %q, call %q, images %d: %.40s", p.Kind, p.Text, p.CallID, p.Images, block)
				}
			}
		`)))
	a.say("", bash("See how they are read", "go test ./internal/events -run TestScratch -v && rm internal/events/scratch_test.go"))
	a.say("Two more places where the dialect is decided outside of this package: how recorded sessions become turns, and how the worker reads a turn.",
		read("internal/transcript/transcript.go"), read(compaction+"turn.go"), read("internal/worker/texts.go"))
	a.say(`
		The survey is done. What I found:

		**Sound**

		- [x] Unedited messages come back byte for byte: ´Write´ returns ´Raw´ as long as ´Edited´ is false, and the readers return slices of the input, never copies.
		- [x] Unknown blocks become ´PartOther´ with their bytes; they are measured by the size of their JSON and never edited.
		- [x] Thinking keeps its signature; a text edit of it replaces ´thinking´ only.

		**Gaps**

		- [ ] ´container_upload´ is ´PartOther´: it counts with the 45 characters of its JSON, although the API puts a whole file into the context. ´document´ and ´image´ count as images; an upload should as well.
		- [ ] ´redacted_thinking´ has no text, so it counts as nothing but still costs tokens. Its ´data´ is what the provider bills.
		- [ ] No test says what happens to ´cache_control´ on a block whose neighbour is edited. It works, by construction; nothing would notice if it stopped.
		- [ ] No test goes over all block types in one table. The next type will be forgotten as easily.

		I would fix the first, pin the rest with tests, and leave ´redacted_thinking´ for you to decide. Nothing is changed yet.
	`)
	a.user(`
		Good survey. Decisions:

		- container_upload: yes, count it as an image.
		- redacted_thinking: leave the estimate as it is. An encrypted payload says little about tokens. But write down that this is on purpose.
		- Test first, please, and show me the red run.
		- The table of all blocks must be ordered, not a map: I read these outputs in CI.
	`)
	a.say("The table first. It names each block of the API with the kind we read it as, and whether bytes survive an edit of a neighbour.",
		write(blocks, code(`
			package events

			import (
				"fmt"
				"testing"
			)

			// anthropicBlocks are the blocks of the Messages API, with the kind they are read as.
			var anthropicBlocks = []struct {
				kind  PartKind
				block string
			}{
				{PartText, ´{"type":"text","text":"a"}´},
				{PartText, ´{"type":"text","text":"a","citations":[{"type":"char_location","cited_text":"x"}]}´},
				{PartText, ´{"cache_control":{"type":"ephemeral"},"type":"text","text":"a"}´},
				{PartCall, ´{"type":"tool_use","id":"toolu_1","name":"n","input":{"a":1.50}}´},
				{PartResult, ´{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}´},
				{PartResult, ´{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"image","source":{}}],"is_error":true}´},
				{PartThinking, ´{"type":"thinking","thinking":"hm","signature":"s"}´},
				{PartThinking, ´{"type":"redacted_thinking","data":"AAAA"}´},
				{PartImage, ´{"type":"image","source":{"type":"url","url":"https://e.example/a.png"}}´},
				{PartImage, ´{"type":"document","source":{"type":"text","data":"a"},"title":"t"}´},
				{PartImage, ´{"type":"container_upload","file_id":"file_1"}´},
				{PartOther, ´{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}´},
				{PartOther, ´{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}´},
				{PartOther, ´{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}´},
				{PartOther, ´{"type":"mcp_tool_use","id":"mcptoolu_1","name":"n","server_name":"s","input":{}}´},
				{PartOther, ´{"type":"of tomorrow","text":"a"}´},
			}

			// Every block of the API has its place in the model, and those of tomorrow have one too.
			func TestAnthropicBlockKinds(t *testing.T) {
				for _, test := range anthropicBlocks {
					m, err := Anthropic.Read(Raw(´{"role":"user","content":[´ + test.block + ´]}´))
					if err != nil {
						t.Fatalf("%s: %v", test.block, err)
					}
					if len(m.Parts) != 1 || m.Parts[0].Kind != test.kind {
						t.Errorf("%s: read as kind %d, want %d", test.block, m.Parts[0].Kind, test.kind)
					}
				}
			}

			// An edit of one block leaves the bytes of its neighbours alone, whatever they are.
			func TestAnthropicNeighboursSurvive(t *testing.T) {
				for _, test := range anthropicBlocks {
					raw := fmt.Sprintf(´{"role":"user","content":[%s,{"type":"tool_result","tool_use_id":"t","content":"long"},%s]}´, test.block, test.block)
					m, err := Anthropic.Read(Raw(raw))
					if err != nil {
						t.Fatalf("%s: %v", test.block, err)
					}
					m.SetText(1, "gone")
					got, err := Anthropic.Write(m)
					if err != nil {
						t.Fatalf("%s: %v", test.block, err)
					}
					want := fmt.Sprintf(´{"role":"user","content":[%s,{"type":"tool_result","tool_use_id":"t","content":"gone"},%s]}´, test.block, test.block)
					if string(got) != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
				}
			}
		`)))
	a.say("", failing(bash("The red run", "go test ./internal/events -run 'TestAnthropic'")))
	a.say("One failure, the upload, and no neighbour is harmed. The fix is one word in the reader.",
		edit(events+"anthropic.go", "\tcase \"image\", \"document\":\n\t\tp.Kind = PartImage\n", "\tcase \"image\", \"document\", \"container_upload\":\n\t\tp.Kind = PartImage\n"))
	a.say("", bash("Green?", "go test ./internal/events && go vet ./internal/events && gofmt -l internal/events"),
		read(events+"anthropic.go"),
		todos(
			"x Survey: how a message is read, kept, measured and written",
			"x Compare with the blocks the API has today",
			"x Report before changing anything",
			"> Tests for the gaps: upload done, then measures and results",
			"- Write the mapping down",
			"- gofmt, vet, tests of all packages touched"))
	a.say("Green. Is `PartImage` of a user's message edited anywhere? A block without text that gets a text becomes a text block; that must hold for the upload too. I'll look at `writeContent` again, and at the places that call `SetText`.",
		grep("SetText\\(", "internal"), read(events+"block.go"), read(compaction+"render.go"))
	a.say("Only results are edited by the stages, so an upload is never touched. Its measure, then: a test in the core, from the outside, beside the one for real sessions.",
		read(compaction+"sessions_test.go"), readLines(compaction+"entry.go", 95, 120))
	a.say("", write(compaction+"anthropic_test.go", code(`
		package compaction_test

		import (
			"testing"

			"compactd/internal/compaction"
			"compactd/internal/events"
		)

		// entries measures one message of the dialect.
		func entries(t *testing.T, raw string) []compaction.Entry {
			t.Helper()
			m, err := events.Anthropic.Read(events.Raw(raw))
			if err != nil {
				t.Fatal(err)
			}
			return compaction.Measure(m, compaction.Entry{Seq: 1, Turn: 1})
		}

		// What the API sends is measured by what it costs: files as images, unknown
		// blocks by their JSON. Encrypted thinking counts as nothing on purpose: the
		// length of its bytes says little about tokens.
		func TestAnthropicMeasures(t *testing.T) {
			rate := compaction.NewRate(compaction.Profiles["default"], "anthropic")
			const message = 4 // tokens of framing
			for _, test := range []struct {
				name string
				raw  string
				want compaction.Tokens
			}{
				{"a text of 8 units", ´{"role":"user","content":"12345678"}´, message + 3},
				{"an image", ´{"role":"user","content":[{"type":"image","source":{}}]}´, message + 1024},
				{"an upload", ´{"role":"user","content":[{"type":"container_upload","file_id":"file_1"}]}´, message + 1024},
				{"encrypted thinking", ´{"role":"assistant","content":[{"type":"redacted_thinking","data":"AAAAAAAAAAAAAAAA"}]}´, message},
				{"a block of tomorrow", ´{"role":"user","content":[{"type":"x"}]}´, message + 8},
			} {
				got := compaction.Tokens(0)
				for _, e := range entries(t, test.raw) {
					got += rate.Entry(&e)
				}
				if got != test.want {
					t.Errorf("%s: %d tokens, want %d", test.name, got, test.want)
				}
			}
		}
	`)))
	a.say("", failing(bash("Run it", "go test ./internal/compaction -run TestAnthropicMeasures")))
	a.say("My arithmetic for the unknown block was off: 12 units of JSON are 6 base tokens at 2 units each, times 1.4145, rounded up, makes 9. The estimator is right and the test was wrong.",
		edit(compaction+"anthropic_test.go", "message + 8},", "message + 9},"))
	a.say("", bash("Both packages", "go test ./internal/events ./internal/compaction && go vet ./internal/... && gofmt -l internal"),
		read(compaction+"anthropic_test.go"))
	a.say(`
		Both packages pass. So far: the upload counts as an image, the table of blocks is in place, neighbours survive, and what is measured is pinned with the reason for the encrypted thinking beside it. The change outside of tests is one word.
	`)
	a.user(`
		Good. Three more things before you write it down:

		1. Tool results: content may be absent, "", a string, a list with images, or (from a gateway I won't name) an object. Pin how each reads and how it looks after it was cleared. A cleared result must keep is_error and cache_control.
		2. Please check the usage numbers: cache_creation has been split by the API into 5-minute and 1-hour parts. I don't know whether we would count them twice. Read the code that does it and its tests.
		3. Run the fuzz target on its seeds at least, and add the blocks of your table to the seeds.

		Don't touch the fixtures. I repeat myself, I know.
	`)
	a.say("Understood: fixtures stay. First what the code does with usage, and where.",
		read(events+"usage.go"), read(events+"turn.go"), readLines(events+"turn_test.go", 135, 60))
	a.say("", grep("cache_creation", "internal"), read(events+"fuzz_test.go"), read(events+"testdata/v1/turn-anthropic.json"))
	a.say(`
		The split comes as ´"cache_creation":{"ephemeral_5m_input_tokens":…,"ephemeral_1h_input_tokens":…}´ beside ´cache_creation_input_tokens´, which is their sum. We read the sum by its name and pass over the object, so nothing counts twice. A test should hold that, since the names are so alike.
	`,
		bash("How the cases of TestUsage are written", "grep -n -A38 'func TestUsage(' internal/events/turn_test.go | cut -c1-230"))
	a.say("I'll write the results and the usage as two tests in the new file.",
		edit(blocks, "// Every block of the API has its place", part(`// A result reads the same in all the shapes the API and its gateways have, and a
// cleared one keeps everything but its content.
func TestAnthropicResultShapes(t *testing.T) {
	for _, test := range []struct {
		content string // with its name, or nothing
		text    string
		images  int
	}{
		{"", "", 0},
		{´,"content":""´, "", 0},
		{´,"content":"a\nb"´, "a\nb", 0},
		{´,"content":[]´, "", 0},
		{´,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]´, "a\nb", 0},
		{´,"content":[{"type":"image","source":{}},{"type":"text","text":"a"}]´, "a", 1},
		{´,"content":{"rows":7}´, ´{"rows":7}´, 0},
	} {
		const head = ´{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"cache_control":{"type":"ephemeral"}´
		m, err := Anthropic.Read(Raw(head + test.content + "}]}"))
		if err != nil {
			t.Fatalf("%s: %v", test.content, err)
		}
		if p := m.Parts[0]; p.Text != test.text || p.Images != test.images || !p.Failed {
			t.Errorf("%s: text %q, %d images, failed %t", test.content, p.Text, p.Images, p.Failed)
		}
		m.SetText(0, "[cleared]")
		got, err := Anthropic.Write(m)
		if err != nil {
			t.Fatalf("%s: %v", test.content, err)
		}
		if want := head + ´,"content":"[cleared]"}]}´; string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The parts of what was written to the cache are not counted beside their sum.
func TestAnthropicCacheParts(t *testing.T) {
	turn, err := DecodeTurn([]byte(´{"messages":[],"usage":{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,´ +
		´"cache_creation":{"ephemeral_5m_input_tokens":15,"ephemeral_1h_input_tokens":5},"output_tokens":7}}´))
	if err != nil {
		t.Fatal(err)
	}
	if u := turn.Usage; u == nil || u.Input != 123 || u.Output != 7 {
		t.Errorf("got %+v, want 123 in and 7 out", u)
	}
}

// Every block of the API has its place`)))
	a.say("", failing(bash("Run them", "go test ./internal/events -run 'TestAnthropic'")))
	a.say("I assumed that `Input` is the whole input. Let me see what the fields of `Usage` are.",
		grep("type Usage struct", "internal/events"),
		bash("The type with its comments", "grep -n -B4 -A16 'type Usage struct' internal/events/*.go"))
	a.say("`Input` is what was not cached, and the cache has fields of its own, as with the provider. The test should compare all four.",
		edit(blocks, "\tif u := turn.Usage; u == nil || u.Input != 123 || u.Output != 7 {\n\t\tt.Errorf(\"got %+v, want 123 in and 7 out\", u)\n\t}\n",
			"\tif u := turn.Usage; u == nil || *u != (Usage{Input: 3, CacheRead: 100, CacheCreate: 20, Output: 7}) {\n\t\tt.Errorf(\"got %+v\", u)\n\t}\n"))
	a.say("", bash("Run them again", "go test ./internal/events -run 'TestAnthropic' && go vet ./internal/events"),
		read(blocks))
	a.say("Now the seeds of the fuzz target: each block of the table in a turn of its own.",
		bash("How seeds are added", "grep -n 'f.Add' -B3 -A6 internal/events/fuzz_test.go"))
	a.say("", edit(events+"fuzz_test.go", "func FuzzDecodeTurn(f *testing.F) {\n", part("func FuzzDecodeTurn(f *testing.F) {\n\tfor _, b := range anthropicBlocks {\n\t\tf.Add([]byte(´{\"format\":\"anthropic\",\"messages\":[{\"role\":\"user\",\"content\":[´ + b.block + ´]}]}´))\n\t}\n")))
	a.say("", bash("The seeds alone, then everything", "go test ./internal/events -run FuzzDecodeTurn -v | grep -v '^=== ' && go test ./internal/events"),
		read(events+"fuzz_test.go"), read(events+"property_test.go"))
	a.say("The property tests draw blocks as well. `drawAnthropicBlock` doesn't know the upload yet; one more case there makes every property hold for it.",
		bash("The generator of blocks", "sed -n '26,56p' internal/events/property_test.go"))
	a.say("", failing(edit(events+"property_test.go", "{\"type\":\"image\",\"source\":{}}", "{\"type\":\"container_upload\",\"file_id\":\"f\"}")))
	a.say("The line is written with spaces drawn at random, and my text was not exact. I'll leave this generator alone rather than force it: the table covers the type with and without edits, and the fuzz target starts from it. Now the page. I want it to follow the others in docs.",
		bash("What docs there are", "ls -R docs && cat docs/adr/README.md docs/adr/0000-template.md"),
		read("CHANGELOG.md"))
	a.say("There is no page about formats yet. I'll write a short one that a stranger can act on: a table, then the promises, then what is on purpose.",
		write(page, code(`
			# The anthropic dialect

			Messages of Anthropic's Messages API, as an agent would send them. ´internal/events/anthropic.go´ reads and writes them,
			´validate_anthropic.go´ checks a history against the rules of the API and shares no code with it.

			| block | read as | measured as | edited by a stage |
			|---|---|---|---|
			| ´text´ | text | its text | never |
			| ´tool_use´ | call | name and arguments | never |
			| ´tool_result´ | result | its text, and each image in it | cleared, or pointed to a later read |
			| ´thinking´ | thinking | its text | never |
			| ´redacted_thinking´ | thinking | nothing | never |
			| ´image´, ´document´, ´container_upload´ | image | 1,024 tokens | never |
			| any other | other | its JSON, two units a token | never |

			## Promises

			- A message that no stage edited is rendered with the bytes it came in, white space and duplicate keys included.
			- An edited message keeps the bytes of every block but the edited one, and all members that this version does not know.
			- A cleared result keeps ´is_error´ and ´cache_control´; its content becomes a string.
			- A block of an unknown type is no error.

			## On purpose

			- ´redacted_thinking´ counts as nothing: the length of an encrypted payload says little about its tokens, and thinking of
			  earlier turns is dropped by the provider anyway.
			- A ´document´ counts as one image whatever its length. The estimate is corrected by the usage that the provider reports.
			- ´cache_creation´ is not read: its parts add up to ´cache_creation_input_tokens´, which is.

			## Tests

			´anthropic_blocks_test.go´ holds a table of all blocks. A new type of the API gets a line there first.
		`)),
		edit("CHANGELOG.md", "### Added\n\n", "### Added\n\n- Uploads to a container (container_upload) count as an image each.\n"))
	a.say("", todos(
		"x Survey: how a message is read, kept, measured and written",
		"x Compare with the blocks the API has today",
		"x Report before changing anything",
		"x Tests for the gaps: blocks, neighbours, results, cache parts, measures",
		"x Seeds of the fuzz target",
		"x Write the mapping down",
		"> gofmt, vet, tests of all packages touched"),
		bash("Everything", "gofmt -l . ; go vet ./... && go test ./..."),
		bash("The fixtures are untouched", "git status --short && git diff --stat -- internal/events/testdata"))
	a.say(`
		All of it passes, and the fixtures are as they were:

		- [x] every block of the API is in one ordered table, with the kind it is read as
		- [x] neighbours of an edited block keep their bytes, also with cache_control and citations
		- [x] results in seven shapes, read and cleared
		- [x] the parts of ´cache_creation´ are not counted twice
		- [x] 16 seeds more for the fuzz target
		- [x] docs/format/anthropic.md
		- [ ] the drawn blocks of the property tests don't include the upload

		The last one is open on purpose; say the word and I'll add it.
	`)
	a.user(`
		Please do add it, I don't like leaving a generator behind the table. And then one review round: read every file you touched once more from top to bottom as if somebody else had written it, and the files next to it that a reader of the page will open. Tell me about anything that reads wrong, even if it is not yours. Must-fix first, then nice-to-have. Don't fix the latter without asking.
	`)
	a.say("First the generator, by its real lines.",
		bash("Exact lines", "grep -n 'image' internal/events/property_test.go"),
		read(events+"property_test.go"))
	a.say("", edit(events+"property_test.go", "func drawAnthropicBlock(t *rapid.T) string {\n", part("func drawAnthropicBlock(t *rapid.T) string {\n\tif rapid.IntRange(0, 9).Draw(t, \"upload\") == 0 {\n\t\treturn ´{\"type\":\"container_upload\",\"file_id\":\"´ + text(t) + ´\"}´\n\t}\n")))
	a.say("", bash("The properties with the upload among the blocks", "go test ./internal/events -run 'Identity|Edit|Arguments' -v | grep -E '^(---|ok)' && gofmt -l internal/events"))
	a.say("Holds. Now the review, file by file, as a stranger.",
		read(blocks), read(events+"anthropic.go"), read(compaction+"anthropic_test.go"), read(page))
	a.say("", read(events+"validate_anthropic.go"), read(events+"validate_test.go"), read(events+"anthropic_test.go"))
	a.say("Next to them: the walker and the codec, which a reader of the promises will want to check, and the two sessions tests that run real transcripts through the dialect.",
		read(events+"walk.go"), read(events+"codec.go"), read(events+"sessions_test.go"))
	a.say("", read(events+"format_test.go"), read(events+"fixture_test.go"), read(events+"codec_test.go"))
	a.say("One thing I want to verify before I report it: whether the table in the page and the table in the test agree on the number of types.",
		bash("Types in the test and in the page", "grep -oE '\"type\":\"[a-z_ ]+\"' internal/events/anthropic_blocks_test.go | sort | uniq -c; grep -o '^| .[a-z_]*' docs/format/anthropic.md"),
		failing(bash("Is every block of the validator in the table?", "for b in $(grep -oE 'case \"[a-z_]+\"' internal/events/validate_anthropic.go | cut -d'\"' -f2); do grep -q \"\\\"$b\\\"\" internal/events/anthropic_blocks_test.go || { echo \"missing: $b\"; exit 1; }; done; grep -q 'server_tool_use' docs/format/anthropic.md")))
	a.say("The loop is content, and the last check tells me that the page doesn't name the server's own tools; they hide under \"any other\". A reader will look for them by name.",
		edit(page, "| any other | other | its JSON, two units a token | never |", part("| ´server_tool_use´ and its results, ´search_result´, any other | other | its JSON, two units a token | never |")))
	a.say("", bash("The last run over everything", "gofmt -l . ; go vet ./... && go test ./... && git diff --stat && git status --short"),
		bash("The whole change of existing files", "git diff"),
		read(page))
	a.say(`
		The review, with the generator extended and all tests green:

		**Must fix** (fixed)

		- [x] The page hid the server's own tools under "any other". They are named now.

		**Nice to have** (not touched, for you to decide)

		- [ ] ´anthropic_test.go´ has a case "unknown blocks stay" that uses ´server_tool_use´ as its example of an unknown type. It is known to the API, only not to us. Another name would age better.
		- [ ] ´validate_test.go´ has lines of more than 200 characters. They are readable as tables, but not in a diff.
		- [ ] ´sessions_test.go´ skips when no transcripts are there. The skip is loud in its text and silent in a plain ´go test´.

		**Constraints**, one by one: unedited bytes are identical (table and property); unknown blocks stay; openai and neurolink have no changed line; no dependency, no float; fixtures untouched; new tests in files of their own. I have nothing else open.
	`)
	a.user(`
		Thanks. Do the first nice-to-have (another name for the unknown type), leave the rest.

		And since I now have a table for anthropic, I miss one for openai: the parts of a user's content and the shapes of a tool message. Same manner: ordered, test first where you expect a gap, neighbours must survive. You must not change what it does today, so where the table and the code differ, the code wins and you tell me. Don't write a page for it yet.
	`)
	a.say("The name first. Then the openai reader again, with fresh eyes, its tests, and what the validator says about parts.",
		todos(
			"> Another name for the unknown type in anthropic_test.go",
			"- A table of openai's parts",
			"- A table of the shapes of a tool message",
			"- Report where table and code differ"),
		bash("The case with its lines", "grep -n -A14 'unknown blocks stay' internal/events/anthropic_test.go"),
		read(events+"openai.go"), read(events+"openai_test.go"))
	a.say("", editAll(events+"anthropic_test.go", "\"type\":\"server_tool_use\",\"id\":\"x\"", "\"type\":\"of_tomorrow\",\"id\":\"x\""),
		read(events+"validate_openai.go"), read(events+"block.go"),
		grep("\"(image_url|input_audio|file|refusal|input_text)\"", "internal/events"))
	a.say("Content is read by `readPlainBlock` here, shared with what stands inside of a result. I'll write down what I expect from the API's reference, not from the code, so that differences show.",
		write(events+"openai_parts_test.go", code(`
			package events

			import (
				"fmt"
				"testing"
			)

			// openaiParts are the content parts of chat completions, with the kind they are read as.
			var openaiParts = []struct {
				kind PartKind
				part string
			}{
				{PartText, ´{"type":"text","text":"a"}´},
				{PartText, ´{"type":"refusal","refusal":"no"}´},
				{PartImage, ´{"type":"image_url","image_url":{"url":"https://e.example/a.png","detail":"low"}}´},
				{PartImage, ´{"type":"file","file":{"file_id":"f"}}´},
				{PartOther, ´{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}´},
				{PartOther, ´{"type":"of_tomorrow","text":7}´},
			}

			// Every part of a user's content has its place in the model.
			func TestOpenAIPartKinds(t *testing.T) {
				for _, test := range openaiParts {
					m, err := OpenAI.Read(Raw(´{"role":"user","content":[´ + test.part + ´]}´))
					if err != nil {
						t.Fatalf("%s: %v", test.part, err)
					}
					if len(m.Parts) != 1 || m.Parts[0].Kind != test.kind {
						t.Errorf("%s: read as kind %d, want %d", test.part, m.Parts[0].Kind, test.kind)
					}
				}
			}

			// An edit of one part leaves the bytes of its neighbours alone.
			func TestOpenAINeighboursSurvive(t *testing.T) {
				for _, test := range openaiParts {
					raw := fmt.Sprintf(´{"role":"user","content":[%s,{"type":"text","text":"long"},%s]}´, test.part, test.part)
					m, err := OpenAI.Read(Raw(raw))
					if err != nil {
						t.Fatalf("%s: %v", test.part, err)
					}
					m.SetText(1, "gone")
					got, err := OpenAI.Write(m)
					if err != nil {
						t.Fatalf("%s: %v", test.part, err)
					}
					want := fmt.Sprintf(´{"role":"user","content":[%s,{"type":"text","text":"gone"},%s]}´, test.part, test.part)
					if string(got) != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
				}
			}

			// A tool message is one result, whatever the shape of its content, and keeps
			// its other members when it is cleared.
			func TestOpenAIResultShapes(t *testing.T) {
				for _, test := range []struct{ content, text string }{
					{´""´, ""},
					{´"a\nb"´, "a\nb"},
					{´[{"type":"text","text":"a"},{"type":"text","text":"b"}]´, "a\nb"},
				} {
					raw := fmt.Sprintf(´{"role":"tool","content":%s,"tool_call_id":"c","x":{"y":1.0}}´, test.content)
					m, err := OpenAI.Read(Raw(raw))
					if err != nil {
						t.Fatalf("%s: %v", test.content, err)
					}
					if len(m.Parts) != 1 || m.Parts[0].Kind != PartResult || m.Parts[0].Text != test.text {
						t.Errorf("%s: read as %+v", test.content, m.Parts)
					}
					m.SetText(0, "[cleared]")
					got, err := OpenAI.Write(m)
					if err != nil {
						t.Fatalf("%s: %v", test.content, err)
					}
					if want := ´{"role":"tool","content":"[cleared]","tool_call_id":"c","x":{"y":1.0}}´; string(got) != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
				}
			}
		`)))
	a.say("", failing(bash("Where do table and code differ?", "go test ./internal/events -run 'TestOpenAI'")))
	a.say("Let me see how those parts are read, before I move the table to what the code does.",
		bash("The reader of plain blocks", "grep -n -A44 'func readPlainBlock' internal/events/block.go"),
		read("internal/compaction/tokens.go"))
	a.say("Audio is the only difference: I had it as an unknown block, and the code counts it as an image. The code wins, as you said; the table says so with a word why.",
		edit(events+"openai_parts_test.go", part("{PartOther, ´{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}}´},"),
			part("{PartImage, ´{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}}´}, // no image, but as large as one")))
	a.say("", bash("The package, with names", "gofmt -l internal/events; go vet ./internal/events && go test ./internal/events -v | grep -E '^(---|ok)'"),
		read(events+"openai_parts_test.go"),
		read(events+"openai.go"))
	a.say("Green. One check is left that I owe you: that nothing of openai's or neurolink's code changed, and that the real consumers of the dialects still agree. These are the core's renderer and the reader of transcripts.",
		bash("Code that changed, tests aside", "git diff --stat -- internal cmd ':!*_test.go' && git diff -- internal cmd ':!*_test.go'"),
		read("internal/transcript/transcript.go"), read(events+"neurolink.go"), read(events+"validate_neurolink.go"))
	a.say("", bash("Everything, a last time", "gofmt -l . ; go vet ./... && go test ./... && git status --short"),
		read(events+"anthropic_test.go"),
		todos(
			"x Another name for the unknown type in anthropic_test.go",
			"x A table of openai's parts",
			"x A table of the shapes of a tool message",
			"x Report where table and code differ"))
	a.say(`
		Done:

		- [x] the unknown type is called ´of_tomorrow´ in both dialects' tests
		- [x] ´openai_parts_test.go´: six parts in order, neighbours, three shapes of a tool message
		- [x] the whole change outside of tests is still the one word in ´anthropic.go´

		Where table and code differ: ´input_audio´ is measured as an image of 1,024 tokens. The API bills audio by its length, about ten tokens a second, so a long recording is underestimated until the provider's usage corrects it. I changed nothing about it.
	`)
}
