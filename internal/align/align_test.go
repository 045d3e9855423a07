package align_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// wantCover fails unless the ranges of parts cover n messages, each once, in order.
func wantCover(t *rapid.T, n int, parts []events.SyncPart) {
	at := int64(0)
	for _, p := range parts {
		r := events.SyncRange{at, at}
		switch set := 0; {
		case p.Keep != nil:
			r = *p.Keep
		case p.Drop != nil:
			r = *p.Drop
		case p.Edit != nil:
			r = events.SyncRange{*p.Edit, *p.Edit + 1}
		case p.StandsFor != nil && p.Message != nil:
			r = *p.StandsFor
		default:
			t.Fatalf("a part with %d of four", set)
		}
		if r[0] != at || r[1] < r[0] {
			t.Fatalf("%v after %d: %+v", r, at, parts)
		}
		at = r[1]
	}
	if at != int64(n) {
		t.Fatalf("parts end at %d of %d: %+v", at, n, parts)
	}
}

// For any outputs, also those out of order, twice of one message, and of several, the parts
// cover the history and give the outputs.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "messages")
		history := make([]codec.Raw, n)
		for i := range history {
			history[i] = codec.Raw(fmt.Sprintf(`{"own":%d}`, i))
		}
		var outputs []align.Output
		var want []codec.Raw
		next := 0
		for i := range rapid.IntRange(0, 14).Draw(t, "outputs") {
			o := align.Output{Raw: codec.Raw(fmt.Sprintf(`{"made":%d}`, i))}
			if from := next; n > 0 && rapid.IntRange(0, 3).Draw(t, "made") > 0 {
				if rapid.IntRange(0, 5).Draw(t, "moved") == 0 {
					from = rapid.IntRange(0, n-1).Draw(t, "from")
				}
				if from < n {
					o.From, o.To = from, min(n, from+rapid.IntRange(1, 2).Draw(t, "of"))
					if o.To == o.From+1 && rapid.Bool().Draw(t, "untouched") {
						o.Untouched, o.Raw = true, history[from]
					}
					next = o.To + rapid.IntRange(0, 2).Draw(t, "hidden")
				}
			}
			outputs, want = append(outputs, o), append(want, o.Raw)
		}
		parts := align.Parts(n, outputs)
		wantCover(t, n, parts)
		if d := cmp.Diff(fmt.Sprintf("%s", want), fmt.Sprintf("%s", align.Apply(history, parts))); d != "" {
			t.Fatalf("parts give something else:\n%s", d)
		}
		if keep := align.Keep(n); align.Changed(keep, n) {
			t.Fatalf("%+v changes %d messages", keep, n)
		}
	})
}

// session makes turns of messages, and their chain.
func session(t *rapid.T, f events.Format) (turns [][]codec.Raw, chain []events.Link) {
	var link events.Link
	for i := range rapid.IntRange(0, 6).Draw(t, "turns") {
		var turn []codec.Raw
		for j := range rapid.IntRange(0, 3).Draw(t, "of") {
			role := "user"
			if (i+j)%2 == 1 {
				role = "assistant"
			}
			turn = append(turn, codec.Raw(fmt.Sprintf(`{"role":%q,"content":"turn %d message %d of %d"}`, role, i, j, rapid.IntRange(0, 1).Draw(t, "text"))))
		}
		link.Digest = f.DigestOf(turn)
		link.Whole = link.Whole.With(link.Digest, len(turn))
		link.End += uint32(len(turn))
		link.Seq++
		turns, chain = append(turns, turn), append(chain, link)
	}
	return turns, chain
}

// A history is known exactly as far as its turns are equal, with or without a lead, also
// behind a prefix; other ids, times and an order of keys make no difference.
func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := events.OpenAI
		turns, chain := session(t, f)
		lead := rapid.IntRange(0, 2).Draw(t, "lead")
		var history []codec.Raw
		for i := range lead {
			history = append(history, codec.Raw(fmt.Sprintf(`{"role":"%s","content":"it is %d o'clock"}`, []string{"system", "developer"}[i%2], rapid.Int().Draw(t, "hour"))))
		}
		same := rapid.IntRange(0, len(turns)).Draw(t, "same")
		for _, turn := range turns[:same] {
			for _, m := range turn {
				history = append(history, append(slices.Clone(m[:len(m)-1]), `,"id":"msg_1","timestamp":7}`...))
			}
		}
		at := len(history)
		tail := rapid.IntRange(0, 2).Draw(t, "new")
		for i := range tail {
			history = append(history, codec.Raw(fmt.Sprintf(`{"role":"user","content":"new %d"}`, i)))
		}
		for same < len(turns) && len(turns[same]) == 0 { // a turn without messages is in any history
			same++
		}
		h := align.Read(f, history, 0)
		k := h.Match(chain)
		if h.Lead != lead || k.Turns != same || k.At != at || k.Shift != lead {
			t.Fatalf("lead %d of %d, %+v, want %d turns up to %d", h.Lead, lead, k, same, at)
		}
		if same > 0 {
			j := rapid.IntRange(1, same).Draw(t, "prefix")
			before := lead + int(chain[j-1].End)
			behind := align.Read(f, history[before:], before)
			p, ok := behind.MatchPrefix(chain, chain[j-1].Whole)
			if !ok || p.Turns != same || p.At != at || p.Shift != lead {
				t.Fatalf("behind %d: %v %+v, want %+v", before, ok, p, k)
			}
			if _, ok := behind.MatchPrefix(chain, events.Digest{1}); ok {
				t.Fatal("a prefix that is not of the session")
			}
		}
	})
}

// Messages are split into turns that are in order, whole, within the bound, and end where no
// call awaits its result, if they can.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 700
		var messages []codec.Raw
		whole := true // no message with its results exceeds a turn
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			var calls []string
			var results []codec.Raw
			size := 0
			for j := range rapid.IntRange(0, 3).Draw(t, "calls") {
				id := fmt.Sprintf("c%d-%d", i, j)
				calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}`, id))
				results = append(results, codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"%0*d"}`, id, rapid.IntRange(1, 600).Draw(t, "size"), 1)))
			}
			step := []codec.Raw{codec.Raw(fmt.Sprintf(`{"role":"user","content":"%0*d"}`, rapid.IntRange(1, 300).Draw(t, "size"), 1))}
			if len(calls) > 0 {
				step = append([]codec.Raw{codec.Raw(`{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`)}, results...)
			}
			for _, m := range step {
				size += len(m) + 1
			}
			whole = whole && size <= most
			messages = append(messages, step...)
		}
		h := align.Read(events.OpenAI, messages, 0)
		turns, err := h.Split(0, most)
		if err != nil {
			t.Fatal(err)
		}
		var all []codec.Raw
		for _, turn := range turns {
			size, open := 0, 0
			for _, m := range turn {
				size += len(m) + 1
				open += strings.Count(string(m), `"function":`) - strings.Count(string(m), `"tool_call_id"`)
			}
			if size > most && len(turn) > 1 || whole && open != 0 {
				t.Fatalf("a turn of %d bytes and %d messages, %d open calls", size, len(turn), open)
			}
			all = append(all, turn...)
		}
		if d := cmp.Diff(fmt.Sprintf("%s", messages), fmt.Sprintf("%s", all)); d != "" {
			t.Fatal(d)
		}
		if _, err := h.Split(0, 20); events.CodeOf(err) != events.CodeTooLarge {
			t.Fatalf("a message larger than a turn: %v", err)
		}
	})
}

// A turn of several messages has at most 1 MiB; a larger message is one alone.
func TestSplitLarge(t *testing.T) {
	var messages []codec.Raw
	for _, n := range []int{400_000, 400_000, 400_000, 1_800_000, 10, 600_000, 600_000} {
		messages = append(messages, codec.Raw(`{"role":"user","content":"`+strings.Repeat("x", n)+`"}`))
	}
	turns, err := align.Read(events.OpenAI, messages, 0).Split(0, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, turn := range turns {
		counts = append(counts, len(turn))
	}
	if want := []int{2, 1, 1, 2, 1}; !slices.Equal(counts, want) {
		t.Errorf("turns of %v messages, want %v", counts, want)
	}
}

// Many tiny messages, and messages of many contents, are split into turns of as many as a turn may have.
func TestSplitMany(t *testing.T) {
	tiny := codec.Raw(`{"role":"user","content":"a"}`)
	parts := codec.Raw(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, events.MaxTurnParts/3-1) + `{"type":"text","text":"a"}]}`)
	call := codec.Raw(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	answer := codec.Raw(`{"role":"tool","tool_call_id":"c","content":"1"}`)
	for name, test := range map[string]struct {
		messages []codec.Raw
		want     []int
	}{
		"one turn":      {slices.Repeat([]codec.Raw{tiny}, events.MaxTurnMessages), []int{events.MaxTurnMessages}},
		"tiny":          {slices.Repeat([]codec.Raw{tiny}, 2*events.MaxTurnMessages+1), []int{events.MaxTurnMessages, events.MaxTurnMessages, 1}},
		"contents":      {slices.Repeat([]codec.Raw{parts}, 7), []int{3, 3, 1}},
		"before a call": {append(slices.Repeat([]codec.Raw{tiny}, events.MaxTurnMessages-1), call, answer), []int{events.MaxTurnMessages - 1, 2}},
		"within a call": {append(append([]codec.Raw{call}, slices.Repeat([]codec.Raw{tiny}, events.MaxTurnMessages)...), answer), []int{events.MaxTurnMessages, 2}},
		"without any":   {nil, []int{0}},
		"not by itself": {[]codec.Raw{codec.Raw(strings.Replace(string(parts), "[", "["+strings.Repeat(`{"type":"text","text":"a"},`, events.MaxTurnParts), 1))}, nil},
	} {
		turns, err := align.Read(events.OpenAI, test.messages, 0).Split(0, 1<<30)
		var got []int
		for _, turn := range turns {
			got = append(got, len(turn))
		}
		if !slices.Equal(got, test.want) || test.want == nil && events.CodeOf(err) != events.CodeTooLarge {
			t.Errorf("%s: turns of %v messages: %v", name, got, err)
		}
	}
}

func TestMember(t *testing.T) {
	for _, test := range [][3]string{
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, "b"}, {`{"a":1}`, `{"a":1,"time":3}`, "time"}, {`{"a":1,"gone":3}`, `{"a":1}`, "gone"}, {`{"a":1}`, `{"a":1}`, ""},
	} {
		if got := align.Member(codec.Raw(test[0]), codec.Raw(test[1])); got != test[2] {
			t.Errorf("%v: %q", test, got)
		}
	}
}

// Of two calls alike a history keeps the one whose result follows: contents say nothing of ids.
func TestFindByIDs(t *testing.T) {
	call := func(id string) codec.Raw {
		return codec.Raw(`{"role":"assistant","content":"","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]}`)
	}
	h := align.Read(events.OpenAI, []codec.Raw{call("a"), codec.Raw(`{"role":"tool","tool_call_id":"a","content":"old"}`), call("b")}, 0)
	out := []align.Output{{Raw: call("b")}, {Raw: call("c")}}
	align.Find(h, 0, h.Len(), out)
	if !out[0].Untouched || out[0].From != 2 || out[1].Untouched {
		t.Errorf("%+v", out)
	}
}
