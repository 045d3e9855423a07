package main

// fixValidator adds a rule to the validator of the anthropic dialect, test first.
func fixValidator(a *agent) {
	const (
		dialect = "internal/events/validate_anthropic.go"
		rules   = "internal/events/validate.go"
		tests   = "internal/events/validate_test.go"
	)
	a.user(`
		An agent in the field got this from the Messages API after it took over one of our compacted histories:

		    messages.7.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'

		The id was "call:3.1", which its own framework had made up. Our validator said the history was fine. Please teach internal/events to catch this.

		- The rule must have a name of its own, bad_call_id. Don't overload bad_shape.
		- It is for the anthropic dialect only. Never touch what openai or neurolink accept.
		- Write the test first and show me that it fails.
		- The text of a violation must not quote the id: no content of a message may get into a violation.
	`)
	a.say("I'll read the validator of this dialect and see where ids are handled so far.",
		read(dialect),
		grep("duplicate_call_id|bad_shape\", i, \"a tool_", "internal/events"))
	a.say("The ids are collected in `anthropicBlock` and compared in `anthropic`. Now the list of rules and the tests around it.",
		read(rules),
		grep("^func |\"a call id twice\"|\"a result without id\"", tests))
	a.say("", todos(
		"> Plant histories with malformed ids and see the tests fail",
		"- List the rule bad_call_id",
		"- Check the ids of tool_use and tool_result",
		"- Run the tests of the package, go vet and gofmt",
		"- Note the change in CHANGELOG.md"))
	a.say("The tests first. A planted error must break exactly the rules it names, so I want one history for the call, and one for the result that answers it.",
		readLines(tests, 129, 12),
		bash("Run the validator's tests before any change", "go test ./internal/events -run 'Planted|EveryRule|ValidHistories' -v"))
	a.say("", edit(tests, part("\t\t{\"a result without id\", []string{´{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":\"x\"}]}´}, []string{\"bad_shape\"}},\n"),
		part("\t\t{\"a result without id\", []string{´{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":\"x\"}]}´}, []string{\"bad_shape\"}},\n"+
			"\t\t{\"a call id with a dot\", []string{\n"+
			"\t\t\t´{\"role\":\"user\",\"content\":\"a\"}´,\n"+
			"\t\t\t´{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"call:3.1\",\"name\":\"n\",\"input\":{}}]}´,\n"+
			"\t\t}, []string{\"bad_call_id\"}},\n"+
			"\t\t{\"a call id that is not ASCII, answered\", []string{\n"+
			"\t\t\t´{\"role\":\"user\",\"content\":\"a\"}´,\n"+
			"\t\t\t´{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"té1\",\"name\":\"n\",\"input\":{}}]}´,\n"+
			"\t\t\t´{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"té1\",\"content\":\"x\"}]}´,\n"+
			"\t\t}, []string{\"bad_call_id\", \"bad_call_id\"}},\n")))
	a.say("", failing(bash("See the new tests fail", "go test ./internal/events -run 'Planted|EveryRule'")))
	a.say("Red, and for the right reason: nothing is reported for the two histories, and the rule is not listed. Now the list.",
		edit(rules, "\t\t\"duplicate_call_id\", // no two tool_use of a history share an id\n",
			"\t\t\"duplicate_call_id\", // no two tool_use of a history share an id\n\t\t\"bad_call_id\",       // an id has other characters than A-Z a-z 0-9 _ -\n"),
		grep("func ValidID|func ValidEventID", "internal/events"))
	a.say("There is `ValidID` for the ids of sessions. It may do; I'll check its bounds before I use it here.",
		bash("Show ValidID with its comment", "grep -n -B8 -A14 'func ValidID' internal/events/subject.go"))
	a.say(`
		It does not do: it also limits the length, and the API's pattern does not. A history with a very long id is valid, and we must not claim otherwise. I'll write a check of its own.
	`,
		edit(dialect, "\t\ttools.calls = append(tools.calls, b.ID)\n",
			"\t\tif !anthropicID(b.ID) {\n\t\t\tc.report(\"bad_call_id\", i, \"the id of a tool_use has a character that the API refuses\")\n\t\t}\n\t\ttools.calls = append(tools.calls, b.ID)\n"),
		edit(dialect, "\t\ttools.results = append(tools.results, b.ToolUseID)\n",
			"\t\tif !anthropicID(b.ToolUseID) {\n\t\t\tc.report(\"bad_call_id\", i, \"the tool_use_id of a tool_result has a character that the API refuses\")\n\t\t}\n\t\ttools.results = append(tools.results, b.ToolUseID)\n"))
	a.say("", failing(bash("Build before the helper exists, to see both places", "go vet ./internal/events")))
	a.say("Both places are found. The helper goes to the end of the file.",
		bash("Last lines of the file", "tail -n 12 "+dialect))
	a.say("", edit(dialect, "\t\ttools.results = append(tools.results, b.ToolUseID)\n\t}\n}\n",
		"\t\ttools.results = append(tools.results, b.ToolUseID)\n\t}\n}\n\n"+
			"// anthropicID reports whether an id has only characters that the API takes.\n"+
			"func anthropicID(s string) bool {\n\treturn !strings.ContainsFunc(s, func(r rune) bool {\n"+
			"\t\treturn !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')\n\t})\n}\n"))
	a.say("", failing(bash("Run the tests", "go test ./internal/events -run 'Planted|EveryRule|ValidHistories'")))
	a.say("The import is missing.",
		edit(dialect, "import \"slices\"\n", "import (\n\t\"slices\"\n\t\"strings\"\n)\n"))
	a.say("", bash("Run the tests of the package and vet", "go test ./internal/events && go vet ./internal/events && gofmt -l internal/events"))
	a.say("Green. I'll read the file once more as a whole, before I call it done.",
		read(dialect),
		read(rules))
	a.say(`
		The rule is in:

		- [x] two planted histories, which failed before and are found now
		- [x] ´bad_call_id´ is listed for anthropic, and only there
		- [x] ids are checked on ´tool_use´ and on ´tool_result´
		- [ ] CHANGELOG.md

		A message with both a call and a result of the same bad id is two violations, one for each place. No text quotes an id. Shall I note it in the changelog under Unreleased?
	`)
	a.user(`
		Yes. Two remarks before that:

		1. The two texts are nearly the same. Say it once: "an id has a character that the API refuses".
		2. server_tool_use blocks have ids as well. They come from the API itself, so they must stay unchecked, but I want a valid history in the tests that shows it. Use an id with a dot.
	`)
	a.say("Both make sense. The texts first.",
		edit(dialect, "\"the id of a tool_use has a character that the API refuses\"", "\"an id has a character that the API refuses\""),
		edit(dialect, "\"the tool_use_id of a tool_result has a character that the API refuses\"", "\"an id has a character that the API refuses\""),
		failing(edit(tests, "{\"type\":\"server_tool_use\",\"id\":\"s.1\"", "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu.1\"")))
	a.say("I guessed at that line; let me look at what is there.",
		bash("Find the block in the tests", "grep -n 'server_tool_use' internal/events/*_test.go | cut -c1-210"))
	a.say("It is in the valid history called long, with the id s1. A dot in both the call and its result shows what is wanted.",
		edit(tests, "{\"type\":\"server_tool_use\",\"id\":\"s1\",\"name\":\"web_search\",\"input\":{}},{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s1\"",
			"{\"type\":\"server_tool_use\",\"id\":\"s.1\",\"name\":\"web_search\",\"input\":{}},{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s.1\""))
	a.say("", bash("Run the package again", "go test ./internal/events && gofmt -l internal/events"),
		read(dialect),
		read("CHANGELOG.md"))
	a.say("The two cases now carry the same report; that wants one place. A method on the checker keeps the switch readable.",
		editAll(dialect, "\t\tif !anthropicID(b.ID) {\n\t\t\tc.report(\"bad_call_id\", i, \"an id has a character that the API refuses\")\n\t\t}\n", "\t\tc.anthropicID(i, b.ID)\n"),
		editAll(dialect, "\t\tif !anthropicID(b.ToolUseID) {\n\t\t\tc.report(\"bad_call_id\", i, \"an id has a character that the API refuses\")\n\t\t}\n", "\t\tc.anthropicID(i, b.ToolUseID)\n"),
		edit(dialect, "// anthropicID reports whether an id has only characters that the API takes.\nfunc anthropicID(s string) bool {\n\treturn !strings.ContainsFunc(s, func(r rune) bool {\n"+
			"\t\treturn !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')\n\t})\n}\n",
			"// anthropicID checks the id of a call, which may be of any length.\nfunc (c *checker) anthropicID(i int, id string) {\n\tif strings.ContainsFunc(id, func(r rune) bool {\n"+
				"\t\treturn r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')\n\t}) {\n"+
				"\t\tc.report(\"bad_call_id\", i, \"an id has a character that the API refuses\")\n\t}\n}\n"))
	a.say("", bash("Run all tests that use the validator", "go test ./internal/events ./internal/compaction ./internal/worker && go vet ./internal/... && gofmt -l internal"),
		edit("CHANGELOG.md", "### Added\n\n", "### Added\n\n- Histories for Anthropic are checked for ids of tool calls that the API refuses (bad_call_id).\n"))
	a.say("", bash("What changed so far", "git diff --stat"),
		readLines("CHANGELOG.md", 1, 14))
	a.say("The changelog has its line. A look at the code as it will be committed.",
		read(dialect),
		bash("Everything that changed", "git diff --stat"),
		todos(
			"x Plant histories with malformed ids and see the tests fail",
			"x List the rule bad_call_id",
			"x Check the ids of tool_use and tool_result",
			"x Run the tests of the package, go vet and gofmt",
			"x Note the change in CHANGELOG.md"))
	a.say(`
		Done. Four files changed: the rule in validate.go, the check in validate_anthropic.go behind one method, two planted errors and a valid history with a dotted server_tool_use id in the tests, one line in the changelog. openai and neurolink are untouched. Everything passes, vet and gofmt are quiet.
	`)
	a.user(`
		Good. One last thing: an orphan result with a bad id is two violations now, orphan_result and bad_call_id. I'd like that pinned in a test, so that nobody "fixes" it later. And say in the comment of the method where the set of characters comes from.
	`)
	a.say("The planted case belongs next to the two others.",
		edit(tests, "\t\t{\"a call id that is not ASCII, answered\", []string{\n",
			part("\t\t{\"a result of nothing with a malformed id\", []string{´{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t 1\",\"content\":\"x\"}]}´}, []string{\"bad_call_id\", \"orphan_result\"}},\n"+
				"\t\t{\"a call id that is not ASCII, answered\", []string{\n")),
		edit(dialect, "// anthropicID checks the id of a call, which may be of any length.\n",
			"// anthropicID checks the id of a call. The characters are those of the pattern in\n// the API's own refusal, ^[a-zA-Z0-9_-]+$, which does not bound the length.\n"))
	a.say("", bash("Run the package and look at the format", "go test ./internal/events && go vet ./internal/events && gofmt -l internal/events"),
		read(dialect))
	a.say(`
		Pinned: a result that answers nothing and has a space in its id is reported under both rules, and the comment names the pattern and its source. The tests pass.
	`)
}
