package scenarios_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// hostile is an event that no well-meaning agent sends. code is that of its rejection, "" when
// it must be accepted without a rejection or note.
type hostile struct {
	name    string
	subject string // "" for a turn of its own session, or of a good one if the event is rejected
	data    string
	code    events.Code
	lasting bool // shares its session with other events of the list, so it is sent to no other
}

// anyRejection is for a payload that is wrong for every kind, whatever the code.
const anyRejection events.Code = "any"

// Hostile events among good sessions are rejected with the right code, under their sequence,
// and change nothing for other sessions. Their content is neither logged nor sent back.
func TestPoison(t *testing.T) {
	t.Parallel()
	clean, poisoned := workertest.New(t, t.TempDir()), workertest.New(t, t.TempDir())
	addSubject(poisoned, "session.bogus.*.*")

	stop := clean.Run("clean", observe.Listener{})
	for n := 1; n <= goodTurns; n++ {
		publishGood(clean, n)
	}
	clean.AwaitDecided()
	stop()

	var log bytes.Buffer
	stop = poisoned.Run("poisoned", observe.LogListener(zerolog.New(zerolog.SyncWriter(&log))))
	all := hostiles()
	want := map[uint64]hostile{}
	for n := 1; n <= goodTurns; n++ {
		publishGood(poisoned, n)
		from, to := len(all)*(n-1)/goodTurns, len(all)*n/goodTurns
		for i, h := range all[from:to] {
			want[publishHostile(poisoned, h, from+i)] = h
		}
	}
	poisoned.AwaitDecided()
	stop()

	outcomes := poisoned.OutcomesBySession()
	byCode := checkRejections(t, outcomes, want)
	changed := cmp.Diff(goodOutcomes(t, clean.OutcomesBySession()), goodOutcomes(t, outcomes))
	if changed != "" {
		t.Errorf("outcomes of good sessions are others beside hostile ones (-alone +beside):\n%s", changed)
	}
	poisoned.WantRedecided()
	logged := strings.Contains(log.String(), workertest.Canary)
	if logged {
		t.Error("the log contains content of an event")
	}
	if !strings.Contains(log.String(), `"code":"duplicate_key"`) {
		t.Error("rejections were not logged: the test shows nothing")
	}
	if len(all) < 200 {
		t.Errorf("%d hostile events are fewer than 200", len(all))
	}
	t.Logf("rejected by code: %v", byCode)
	figures.Print(t, "P7", "hostile", len(all), "good_turns", goodTurns*len(goodSessions), "codes", len(byCode),
		"good_changed", one(changed != ""), "content_leaked", one(logged)+leaks(outcomes))
}

// one is 1 for true, to count.
func one(so bool) int {
	if so {
		return 1
	}
	return 0
}

// leaks counts outcomes that quote a hostile event.
func leaks(outcomes map[workertest.Place][]workertest.Outcome) (n int) {
	for _, all := range outcomes {
		for _, o := range all {
			short := strings.Contains(o.Subject, "."+string(events.KindRejected)+".") || strings.Contains(o.Subject, "."+string(events.KindBudget)+".")
			n += one(short && strings.Contains(o.Data, workertest.Canary))
		}
	}
	return n
}

// checkRejections compares the rejections of hostile events with those wanted.
func checkRejections(t *testing.T, outcomes map[workertest.Place][]workertest.Outcome, want map[uint64]hostile) map[events.Code]int {
	t.Helper()
	byCode := map[events.Code]int{}
	got := map[uint64][]events.Rejected{}
	for _, o := range slices.Concat(slices.Collect(values(outcomes))...) {
		at, err := events.ParseOutcome(o.Subject)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := rejectionOrNote(t, at.Kind, o.Data)
		if !ok {
			continue
		}
		if r.CausedBy.Seq != r.Seq || r.Message == "" {
			t.Errorf("rejection without cause or message: %s", o.Data)
		}
		if strings.Contains(o.Data, workertest.Canary) {
			t.Errorf("%s: the rejection holds content of the event: %s", want[r.Seq].name, o.Data)
		}
		got[r.Seq] = append(got[r.Seq], r)
		byCode[r.Code]++
	}
	for seq, h := range want {
		rs := got[seq]
		delete(got, seq)
		switch {
		case h.code == "" && len(rs) == 0, len(rs) == 1 && rs[0].Code == h.code:
		case h.code == anyRejection && len(rs) == 1 && events.Codes[rs[0].Code].Rejects:
		case len(rs) == 0:
			t.Errorf("%s: no rejection, want %s", h.name, h.code)
		default:
			t.Errorf("%s: %d rejections, the first %s %q; want %q", h.name, len(rs), rs[0].Code, rs[0].Message, h.code)
		}
	}
	for seq, rs := range got {
		t.Errorf("sequence %d, which is of a good session, was rejected: %s %s", seq, rs[0].Code, rs[0].Message)
	}
	return byCode
}

// rejectionOrNote reads a rejection, or the first note about an event that was accepted.
func rejectionOrNote(t *testing.T, k events.Kind, data string) (r events.Rejected, ok bool) {
	t.Helper()
	body, err := events.DecodeOutcome(k, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	switch b := body.(type) {
	case *events.Rejected:
		return *b, true
	case *events.BudgetChanged:
		if len(b.Notes) > 0 {
			return events.Rejected{CausedBy: b.CausedBy, Seq: b.CausedBy.Seq, Code: b.Notes[0].Code, Message: b.Notes[0].Message}, true
		}
	}
	return r, false
}

func values[K comparable, V any](m map[K]V) func(func(V) bool) {
	return func(yield func(V) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// goodTurns is how many turns each good session has.
const goodTurns = 24

var goodSessions = []string{"g0", "g1", "g2", "g3", "g4", "g5"}

func publishGood(env *workertest.Env, n int) {
	for i, s := range goodSessions {
		env.Publish(events.KindTurn, s, agentTurn(15+i, n))
	}
}

// good is an outcome of a good session, without what depends on its position in the log.
type good struct {
	Kind                            events.Kind
	Generation, Turn, Before, After int64
	Level                           events.Level
	Code                            events.Code
	Messages                        []string
	Stages                          []events.Stage
}

func goodOutcomes(t *testing.T, outcomes map[workertest.Place][]workertest.Outcome) map[string][]good {
	t.Helper()
	out := map[string][]good{}
	for p, all := range outcomes {
		s := p.Address.Session
		for _, o := range all {
			if !slices.Contains(goodSessions, s) {
				break
			}
			at, err := events.ParseOutcome(o.Subject)
			if err != nil {
				t.Fatal(err)
			}
			body, err := events.DecodeOutcome(at.Kind, []byte(o.Data))
			if err != nil {
				t.Fatal(err)
			}
			switch b := body.(type) {
			case *events.Compacted:
				g := good{
					Kind: at.Kind, Generation: b.Generation, Turn: b.Through.Turn, Before: b.TokensBefore, After: b.TokensAfter,
					Level: b.Budget.Level, Code: b.Code, Stages: b.StagesUsed,
				}
				for _, m := range b.Messages {
					g.Messages = append(g.Messages, string(m))
				}
				out[s] = append(out[s], g)
			case *events.BudgetChanged:
				out[s] = append(out[s], good{Kind: at.Kind, Generation: b.Budget.Generation, Turn: b.Through.Turn, Before: b.Budget.EstimatedInput, Level: b.Level})
			}
		}
	}
	if len(out) < len(goodSessions) {
		t.Errorf("%d of %d good sessions have outcomes", len(out), len(goodSessions))
	}
	return out
}

// publishHostile sends event i. Each fifth of the events that must be rejected goes into a good
// session.
func publishHostile(env *workertest.Env, h hostile, i int) uint64 {
	env.T.Helper()
	subject := h.subject
	if subject == "" {
		session := fmt.Sprintf("h%d", i)
		if i%5 == 0 && !h.lasting && events.Codes[h.code].Rejects {
			session = goodSessions[i/5%len(goodSessions)]
		}
		subject = "session.turn.default." + session
	}
	a, err := env.JS.Publish(env.T.Context(), subject, []byte(h.data))
	if err != nil {
		env.T.Fatalf("%s: %v", h.name, err)
	}
	return a.Sequence
}

// addSubject lets the log take a subject that is not in the contract.
func addSubject(env *workertest.Env, subject string) {
	env.T.Helper()
	s, err := env.JS.Stream(env.T.Context(), topology.LogStream)
	if err != nil {
		env.T.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.Subjects = append(c.Subjects, subject)
	if _, err := env.JS.UpdateStream(env.T.Context(), c); err != nil {
		env.T.Fatal(err)
	}
	if env.Streams, err = topology.Ensure(env.T.Context(), env.JS, topology.Config{}); err != nil {
		env.T.Fatal(err)
	}
}

const goodMessage = `{"role":"user","content":"` + workertest.Canary + `"}`

// hostiles lists the events of the test.
func hostiles() []hostile {
	return slices.Concat(notJSON(), trailing(), duplicates(), wrongFields(), wrongMessages(), wrongSubjects(), wrongSizes(), conflicts(), tolerated())
}

func each(name string, code events.Code, payloads ...string) []hostile {
	var out []hostile
	for _, p := range payloads {
		out = append(out, hostile{name: name + " " + p[:min(len(p), 60)], data: p, code: code})
	}
	return out
}

func notJSON() []hostile {
	good := `{"turn":1,"messages":[` + goodMessage + `]}`
	return each("not JSON", events.CodeBadJSON,
		"", " ", "\x00\x01\xfe\xff"+workertest.Canary, workertest.Canary, "null", "true", "42", `"`+workertest.Canary+`"`, "[]", `[`+good+`]`, "{", "}", `{"`, `{"messages"`,
		good[:len(good)-1], good[:len(good)/2], "\ufeff"+good, "//"+workertest.Canary+"\n"+good, "<xml>"+workertest.Canary+"</xml>", "---\nmessages: "+workertest.Canary,
		`{messages:[]}`, `{'messages':[]}`, `{"messages":[`+goodMessage+`,]}`, `{"messages":[`+goodMessage+`],}`, `{"messages":["`+workertest.Canary+`]}`,
		`{"turn":NaN,"messages":[`+goodMessage+`]}`, `{"turn":Infinity,"messages":[`+goodMessage+`]}`, `{"turn":-Infinity,"messages":[]}`,
		`{"turn":+1,"messages":[]}`, `{"turn":01,"messages":[]}`, `{"turn":1.,"messages":[]}`, `{"turn":.5,"messages":[]}`, `{"turn":0x10,"messages":[]}`,
		`{"turn":1e,"messages":[]}`, `{"turn":undefined,"messages":[]}`, `{"turn":True,"messages":[]}`,
		`{"messages":[{"role":"user","content":"`+workertest.Canary+"\x01"+`"}]}`, `{"messages":[{"role":"user","content":"`+workertest.Canary+`\x"}]}`,
		`{"messages":[{"role":"user","content":"`+workertest.Canary+`\u12"}]}`, utf16(good),
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), `{"messages":[`+goodMessage+`],"deep":`+nested(400)+`}`,
		`{"messages":[{"role":"user","content":[{"type":"`+workertest.Canary+`","x":`+nested(300)+`}]}]}`,
		`{"messages":[`+goodMessage+`],"deep":`+strings.Repeat(`{"a":`, 250)+"1"+strings.Repeat("}", 250)+`}`,
	)
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func utf16(s string) string {
	var out []byte
	for _, c := range []byte(s) {
		out = append(out, c, 0)
	}
	return string(out)
}

func trailing() []hostile {
	good := `{"turn":1,"messages":[` + goodMessage + `]}`
	return each("trailing", events.CodeTrailingData, good+good, good+" "+workertest.Canary, good+"]", good+"}", good+",", good+"\x00", good+"\n\n"+good, good+`"`+workertest.Canary+`"`)
}

func duplicates() []hostile {
	var out []hostile
	for _, f := range []string{
		`"v":1`, `"id":"x"`, `"turn":1`, `"generation":0`, `"replaces_from":1`, `"format":"openai"`, `"system":"` + workertest.Canary + `"`, `"tools":[]`,
		`"messages":[` + goodMessage + `]`, `"usage":null`, `"policy":null`, `"model":null`, `"x":1`, `"":1`,
		`"model":{"name":"a","name":"b"}`, `"model":{"context_window":5000,"context_window":500000}`,
	} {
		twice := f
		if !strings.Contains(f, "{") || strings.HasPrefix(f, `"messages"`) {
			twice += "," + f
		}
		if strings.HasPrefix(f, `"messages"`) {
			out = append(out, each("duplicate", events.CodeDuplicateKey, `{`+twice+`}`)...)
			continue
		}
		out = append(out, each("duplicate", events.CodeDuplicateKey, `{`+twice+`,"messages":[`+goodMessage+`]}`)...)
	}
	return append(out, each("duplicate", events.CodeDuplicateKey,
		`{"turn":1,"\u0074urn":2,"messages":[`+goodMessage+`]}`,
		`{"messages":[`+goodMessage+`],"turn":1,"messages":[]}`,
		`{"messages":[`+goodMessage+`],"`+strings.Repeat("k", 300)+`":1,"`+strings.Repeat("k", 300)+`":1}`)...)
}

func wrongFields() []hostile {
	var out []hostile
	add := func(field string, code events.Code, values ...string) {
		for _, v := range values {
			out = append(out, hostile{name: field + " " + v[:min(len(v), 40)], data: `{"` + field + `":` + v + `,"messages":[` + goodMessage + `]}`, code: code})
		}
	}
	quoted := `"` + workertest.Canary + `"`
	const huge = "99999999999999999999999"
	bad, far := events.CodeBadType, events.CodeOutOfRange
	add("v", bad, quoted, "1.5", "true", "[]", "{}")
	add("v", far, "-1", "0", "1e400", huge)
	add("v", events.CodeBadVersion, "3", "1e3")
	add("id", bad, "7", "true", "[]", `{"a":`+quoted+`}`, `"a\u0001b"`, `"a\nb"`)
	add("id", events.CodeTooLarge, `"`+strings.Repeat("i", 257)+`"`)
	for _, f := range []string{"turn", "generation", "replaces_from"} {
		add(f, bad, quoted, "1.5", "true", "[]", "{}", "1e-5")
		add(f, far, "-1", "1e400", "-1e400", huge, "-"+huge, "2147483649", "-9223372036854775808")
	}
	add("turn", far, "0", "-0")
	add("replaces_from", far, "0")
	out = append(out, each("replaces_from", far,
		`{"turn":2,"replaces_from":1,"messages":[`+goodMessage+`]}`)...)
	add("model", bad, quoted, "7", "[]", "true")
	add("model", bad, `{"provider":7}`, `{"name":[]}`, `{"name":"a\u0000b"}`, `{"max_output_tokens":"9"}`, `{"context_window":1.5}`, `{"context_window":{}}`)
	add("model", events.CodeTooLarge, `{"name":"`+strings.Repeat("m", 300)+`"}`)
	add("model", far, `{"max_output_tokens":-1}`, `{"max_output_tokens":0}`, `{"context_window":-4096}`, `{"context_window":0}`, `{"context_window":1e400}`,
		`{"context_window":`+huge+`}`, `{"context_window":1000,"max_output_tokens":1000}`)
	add("format", bad, "7", "[]", "true", "{}")
	add("format", events.CodeUnknownFormat, quoted, `"OpenAI"`, `"palm"`, `"openai "`)
	add("system", bad, "7", `{"text":`+quoted+`}`, "true")
	add("tools", bad, quoted, `{"a":`+quoted+`}`, "7")
	add("policy", bad, quoted, "[]", "7")
	add("policy", events.CodeBadPolicy, `{"`+workertest.Canary+`":1}`, `{"threshold":2}`, `{"threshold":-1}`, `{"threshold":0}`, `{"threshold":`+quoted+`}`, `{"threshold":NULL}`[:0]+`{"threshold":[]}`,
		`{"threshold":0.5,"target":0.6}`, `{"threshold":0.12345678}`, `{"threshold":1e-1}`, `{"profile":`+quoted+`}`, `{"enabled":`+quoted+`}`, `{"prune":{"protect_tokens":-1}}`,
		`{"prune":{"protect_tokens":`+huge+`}}`, `{"prune":7}`, `{"prune":{"`+workertest.Canary+`":1}}`, `{"enabled":true,"enabled":false}`)
	add("usage", events.CodeUsageUnknown, `{"input_tokens":1,"input_tokens":2}`, `{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens":9}`,
		`{"input_tokens":`+quoted+`}`, `{"input_tokens":1.5}`, `{"prompt_tokens":1,"prompt_tokens_details":7}`, `{"output_tokens":[]}`,
		`{"input_tokens":-1}`, `{"input_tokens":1e400}`, `{"output_tokens":`+huge+`}`, `{"prompt_tokens":-5,"completion_tokens":1}`, `{"promptTokenCount":-1}`)
	out = append(out, each("messages", events.CodeMissingField, `{}`, `{"turn":1}`, `{"messages":null}`, `{"Messages":[`+goodMessage+`]}`, `{"`+workertest.Canary+`":1}`)...)
	return append(out, each("messages", bad, `{"messages":`+quoted+`}`, `{"messages":`+goodMessage+`}`, `{"messages":7}`, `{"messages":false}`)...)
}

func wrongMessages() []hostile {
	var out []hostile
	add := func(format string, messages ...string) {
		for _, m := range messages {
			out = append(out, hostile{
				name: format + " message " + m[:min(len(m), 60)], code: events.CodeBadMessage,
				data: `{"format":"` + format + `","messages":[` + m + `]}`,
			})
		}
	}
	for _, f := range []string{"openai", "anthropic", "neurolink"} {
		add(f, "7", `"`+workertest.Canary+`"`, "null", "true", "[]", "{}", `{"content":"`+workertest.Canary+`"}`, `{"role":7,"content":"`+workertest.Canary+`"}`,
			`{"role":"`+workertest.Canary+`","content":"x"}`, `{"role":"user"}`, `{"role":"user","content":7}`, `{"role":"user","content":true}`, `{"role":"user","content":null}`,
			goodMessage+`,{"role":"user","content":1e400}`, `{"role":"User","content":"`+workertest.Canary+`"}`)
	}
	add("openai", `{"role":"assistant","content":null,"tool_calls":"`+workertest.Canary+`"}`, `{"role":"assistant","content":null,"tool_calls":[7]}`,
		`{"role":"assistant","content":null,"tool_calls":{"id":"`+workertest.Canary+`"}}`, `{"role":"tool","tool_call_id":"a"}`, `{"role":"user","content":{"text":"`+workertest.Canary+`"}}`)
	add("anthropic", `{"role":"tool","content":"`+workertest.Canary+`"}`, `{"role":"user","content":{"type":"text","text":"`+workertest.Canary+`"}}`)
	add("neurolink", `{"role":"tool","content":"`+workertest.Canary+`"}`, `{"role":"tool_result","content":7}`)
	return append(out, hostile{name: "20 bad messages", code: events.CodeBadMessage, data: `{"messages":[` + strings.Repeat(`"`+workertest.Canary+`",`, 19) + `7]}`})
}

func wrongSubjects() []hostile {
	data := `{"turn":1,"messages":[` + goodMessage + `]}`
	var out []hostile
	for _, id := range []string{
		"a$b", "a/b", "a:b", "a+b", "a@b", "a#b", "a%20b", "äöü", "日本語", "😀", "a\x01b", "a\x7fb", "a\\b", `a"b`, "a'b", "a;b", "<script>", "{}", "..%2f"[2:] + "x",
		strings.Repeat("x", 353), strings.Repeat("y", 1000), "-" + workertest.Canary + "$", "\xff\xfe",
	} {
		out = append(out,
			hostile{name: fmt.Sprintf("session id %.20q", id), subject: "session.turn.default." + id, data: data, code: events.CodeBadID},
			hostile{name: fmt.Sprintf("tenant id %.20q", id), subject: "session.turn." + id + ".s", data: data, code: events.CodeBadID})
	}
	for _, k := range events.LogKinds {
		code := anyRejection
		if k != events.KindTurn {
			out = append(out,
				hostile{name: "kind " + string(k), subject: "session." + string(k) + ".default.k", data: data, code: code},
				hostile{name: "kind " + string(k) + ", binary", subject: "session." + string(k) + ".default.g0", data: "\x00" + workertest.Canary, code: code})
		}
	}
	return append(out,
		hostile{name: "unknown kind", subject: "session.bogus.default.k", data: data, code: events.CodeUnknownKind},
		hostile{name: "unknown kind in a good session", subject: "session.bogus.default.g1", data: data, code: events.CodeUnknownKind},
		hostile{name: "unknown kind, empty", subject: "session.bogus.default.k", code: events.CodeUnknownKind},
		hostile{name: "unknown kind, bad id", subject: "session.bogus.a$b.k", data: data, code: events.CodeUnknownKind},
	)
}

func wrongSizes() []hostile {
	fill := func(n int) string {
		head, tail := `{"messages":[{"role":"user","content":"`+workertest.Canary, `"}]}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	tiny := `{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 99_999) + goodMessage + `]}`
	return slices.Concat(
		each("one byte over", events.CodeTooLarge, fill(events.MaxTurnBytes+1)),
		each("far over", events.CodeTooLarge, fill(7<<20)),
		each("over, and no JSON", events.CodeTooLarge, strings.Repeat("\x00", events.MaxTurnBytes+1)),
		each("just as large as allowed", "", fill(events.MaxTurnBytes)),
		each("100,000 messages", events.CodeTooManyMessages, tiny),
		each("16,000 calls", "", `{"messages":[{"role":"assistant","content":null,"tool_calls":[`+strings.Repeat(`{"id":"a"},`, 15_999)+`{"id":"b"}]},`+goodMessage+`]}`),
		each("16,000 calls without ids", events.CodeMissingCallID, `{"messages":[{"role":"assistant","content":null,"tool_calls":[`+strings.Repeat(`{},`, 15_999)+`{}]},`+goodMessage+`]}`),
		[]hostile{
			{name: "a result without id", lasting: true, code: events.CodeMissingCallID, data: `{"messages":[{"role":"tool","content":"` + workertest.Canary + `"}]}`},
			{
				name: "an Anthropic result without id", lasting: true, code: events.CodeMissingCallID,
				data: `{"format":"anthropic","messages":[{"role":"user","content":[{"type":"tool_result","content":"` + workertest.Canary + `"}]}]}`,
			},
		},
		each("4,000 results without calls", "", `{"messages":[`+strings.Repeat(`{"role":"tool","tool_call_id":"a","content":"x"},`, 4_000)+goodMessage+`]}`),
	)
}

// conflicts are events that are wrong because of their session's state.
func conflicts() []hostile {
	var out []hostile
	add := func(name, session, data string, code events.Code) {
		out = append(out, hostile{name: name, subject: "session.turn.default." + session, data: data, code: code, lasting: true})
	}
	numbered := func(n int, text string) string {
		return fmt.Sprintf(`{"turn":%d,"messages":[{"role":"user","content":"%s %s"}]}`, n, workertest.Canary, text)
	}
	add("first turn", "conflict", numbered(1, "a"), "")
	add("the same again", "conflict", numbered(1, "a"), "")
	add("the same number, other content", "conflict", numbered(1, "b"), events.CodeTurnConflict)
	add("the next one", "conflict", numbered(2, "c"), "")
	add("an old number, other content", "conflict", numbered(1, "d"), events.CodeTurnConflict)
	add("replaces beyond the end", "conflict", `{"replaces_from":9,"messages":[`+goodMessage+`]}`, events.CodeOutOfRange)
	add("another dialect", "conflict", `{"turn":3,"format":"anthropic","messages":[`+goodMessage+`]}`, events.CodeFormatChanged)
	add("another dialect by its model", "conflict", `{"turn":3,"model":{"provider":"anthropic","name":"claude-opus-4-6"},"messages":[`+goodMessage+`]}`, "")
	add("retracts a turn", "conflict", `{"replaces_from":2,"messages":[`+goodMessage+`]}`, "")
	add("begins again in another dialect", "conflict", `{"replaces_from":1,"format":"neurolink","messages":[`+goodMessage+`]}`, "")

	add("first turn", "gap", numbered(1, "a"), "")
	add("a gap", "gap", numbered(3, "c"), events.CodeTurnGap)
	for n := 4; n <= 66; n++ {
		add("parked", "gap", numbered(n, "p"), "")
	}
	add("parked, the same again", "gap", numbered(4, "p"), "")
	add("parked, other content", "gap", numbered(4, "q"), events.CodeTurnConflict)
	add("the 65th to be parked", "gap", numbered(67, "p"), events.CodeTooManyParked)
	add("a number far away", "gap", numbered(2147483647, "p"), events.CodeTooManyParked)
	add("fills the gap", "gap", numbered(2, "b"), "")
	add("goes on", "gap", numbered(67, "p"), "")
	add("a number far away in a new session", "far", numbered(2147483648, "p"), events.CodeTurnGap)
	return out
}

// tolerated are oddities for which a turn is not rejected.
func tolerated() []hostile {
	tool := func(content string) string {
		return `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}}]},` +
			`{"role":"tool","tool_call_id":"a","content":` + content + `}]}`
	}
	block := func(content string) string {
		return `{"format":"anthropic","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":` + content + `}]}]}`
	}
	return slices.Concat(
		each("half a surrogate", "", tool(`"`+workertest.Canary+` \ud83d"`), tool(`"\udc00 `+workertest.Canary+`"`), block(`"`+workertest.Canary+` \ud83d"`), tool(`"`+workertest.Canary+"\xff\xc3"+`"`),
			`{"messages":[`+goodMessage+`],"system":"\ud800 `+workertest.Canary+`"}`),
		each("duplicate keys in a tool's output", "", block(`[{"type":"text","text":"`+workertest.Canary+`","text":"b"}]`), block(`{"a":1,"a":"`+workertest.Canary+`"}`),
			`{"messages":[{"role":"user","role":"user","content":"a","content":"`+workertest.Canary+`"}]}`),
		each("unknown usage", events.CodeUsageUnknown, `{"usage":7,"messages":[`+goodMessage+`]}`, `{"usage":"`+workertest.Canary+`","messages":[`+goodMessage+`]}`,
			`{"usage":{"`+workertest.Canary+`":1},"messages":[`+goodMessage+`]}`, `{"usage":[],"messages":[`+goodMessage+`]}`),
		each("nothing", "", `{"messages":[]}`, `{"turn":1,"messages":[]}`, `{"messages":[],"system":"`+workertest.Canary+`"}`),
		each("unknown fields", "", `{"messages":[`+goodMessage+`],"`+workertest.Canary+`":{"a":1,"a":2}}`, `{"MESSAGES":7,"messages":[`+goodMessage+`]}`),
		each("nulls", "", `{"usage":{},"messages":[`+goodMessage+`]}`,
			`{"v":null,"id":null,"turn":null,"model":null,"format":null,"system":null,"tools":null,"usage":null,"policy":null,"messages":[`+goodMessage+`]}`),
		each("deep, but not too deep", "", `{"messages":[{"role":"user","content":[{"type":"`+workertest.Canary+`","x":`+nested(150)+`}]}]}`),
		each("huge numbers inside", "", `{"messages":[{"role":"user","content":[{"type":"x","n":1e999999,"m":`+strings.Repeat("9", 5000)+`}]}]}`),
		each("whole numbers in other words", "", `{"turn":1e0,"generation":0.0,"messages":[`+goodMessage+`]}`),
		each("a window of one token", "", `{"model":{"context_window":1},"messages":[`+goodMessage+`]}`),
		each("the largest window", "", `{"model":{"context_window":1099511627776},"messages":[`+goodMessage+`]}`),
		each("no text at all", "", `{"messages":[{"role":"user","content":""},{"role":"assistant","content":null},{"role":"user","content":[]}]}`),
	)
}
