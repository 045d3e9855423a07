package syncs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"compactd/internal/align"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/strict"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// wire writes the messages of one dialect.
type wire struct {
	format          events.Format
	provider, model string
	user            func(text string) codec.Raw
	call            func(id string) []codec.Raw
	result          func(id, text string) codec.Raw
}

func rawOf(v any) codec.Raw {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

type object = map[string]any

var wires = []wire{
	{
		events.OpenAI, "openai", "gpt-4",
		func(text string) codec.Raw { return rawOf(object{"role": "user", "content": text}) },
		func(id string) []codec.Raw {
			return []codec.Raw{rawOf(object{"role": "assistant", "content": nil, "tool_calls": []any{
				object{"id": id, "type": "function", "function": object{"name": "read", "arguments": `{"path":"` + id + `.go"}`}},
			}})}
		},
		func(id, text string) codec.Raw {
			return rawOf(object{"role": "tool", "tool_call_id": id, "content": text})
		},
	}, {
		events.Anthropic, "anthropic", "claude-sonnet-4",
		func(text string) codec.Raw { return rawOf(object{"role": "user", "content": text}) },
		func(id string) []codec.Raw {
			return []codec.Raw{rawOf(object{"role": "assistant", "content": []any{
				object{"type": "text", "text": "I look at " + id + ".go next."},
				object{"type": "tool_use", "id": id, "name": "read", "input": object{"path": id + ".go"}},
			}})}
		},
		func(id, text string) codec.Raw {
			return rawOf(object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": text}}})
		},
	}, {
		events.Gemini, "google-ai", "gemini-2.5-pro",
		func(text string) codec.Raw {
			return rawOf(object{"role": "user", "parts": []any{object{"text": text}}})
		},
		func(id string) []codec.Raw {
			return []codec.Raw{rawOf(object{"role": "model", "parts": []any{object{"functionCall": object{"name": "read", "args": object{"path": id + ".go"}}}}})}
		},
		func(_, text string) codec.Raw {
			return rawOf(object{"role": "user", "parts": []any{object{"functionResponse": object{"name": "read", "response": object{"output": text}}}}})
		},
	}, {
		events.Responses, "openai", "gpt-5",
		func(text string) codec.Raw { return rawOf(object{"role": "user", "content": text}) },
		func(id string) []codec.Raw {
			return []codec.Raw{
				rawOf(object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": "I look at " + id + ".go next."}}}),
				rawOf(object{"type": "function_call", "call_id": id, "name": "read", "arguments": `{"path":"` + id + `.go"}`}),
			}
		},
		func(id, text string) codec.Raw {
			return rawOf(object{"type": "function_call_output", "call_id": id, "output": text})
		},
	},
}

// unrecordable are histories that differ in each call, of so many messages that stay.
var unrecordable = map[string]func(w *wire, call int, stays []codec.Raw) []codec.Raw{
	"head": func(w *wire, call int, stays []codec.Raw) []codec.Raw {
		return slices.Concat([]codec.Raw{w.user(fmt.Sprintf("It is second %03d. Find out why the service fails, and fix it. It must not fail any more.", call))}, stays)
	},
	"middle": func(w *wire, call int, stays []codec.Raw) []codec.Raw {
		return slices.Insert(slices.Clone(stays), 1, w.user(fmt.Sprintf("The state of the build at second %03d is the same as before.", call)))
	},
	"tail": func(w *wire, call int, stays []codec.Raw) []codec.Raw {
		return append(slices.Clone(stays), w.user(fmt.Sprintf("A reminder of second %03d: keep the list of tasks up to date.", call)))
	},
	"window": func(w *wire, _ int, stays []codec.Raw) []codec.Raw {
		return slices.Clone(stays[max(0, len(stays)-24):])
	},
}

var second = regexp.MustCompile(`second \d+`)

// fitAgent sends what it is answered to a provider that takes nothing that is too long or not valid.
type fitAgent struct {
	workertest.SyncAgent
	wire   *wire
	window int
	sent   []codec.Raw
}

func (a *fitAgent) sync(more string) events.SyncResponse {
	a.T.Helper()
	messages, err := codec.Marshal(a.History)
	if err != nil {
		a.T.Fatal(err)
	}
	in := fmt.Sprintf(`{"session":%q,"format":%q,"model":{"provider":%q,"name":%q,"context_window":%d,"max_output_tokens":2000},"wait_ms":8000,"messages":%s%s}`,
		a.Session, a.wire.format, a.wire.provider, a.wire.model, a.window, messages, more)
	reply := a.Deliver([]byte(in))
	var out events.SyncResponse
	if reply.Header.Get("Nats-Service-Error-Code") != "" {
		a.T.Fatalf("sync: %s", reply.Data)
	}
	if err := codec.Unmarshal(reply.Data, &out); err != nil {
		a.T.Fatal(err)
	}
	if out.Need != "" {
		a.T.Fatalf("need %s of a whole history", out.Need)
	}
	a.sent = align.Apply(a.History, out.Parts)
	if bad := validate.Messages(a.wire.format, a.sent); len(bad) > 0 {
		a.T.Fatalf("%v\n%s", bad, a.sent)
	}
	call := strict.Call{Provider: a.wire.provider, Model: a.wire.model, Format: string(a.wire.format)}
	for _, m := range a.sent {
		call.Messages = append(call.Messages, json.RawMessage(m))
	}
	if a.wire.format != events.Responses {
		if bad := strict.Refuse(call); len(bad) > 0 {
			a.T.Fatalf("%v\n%s", bad, a.sent)
		}
	}
	return out
}

// tokens is our estimate of messages.
func (w *wire) tokens(messages []codec.Raw) (n int64) {
	rate := measure.RateOf(measure.Profiles["default"], w.provider, w.model)
	for _, raw := range messages {
		m, err := w.format.Read(raw)
		if err != nil {
			panic(err)
		}
		n += int64(rate.Message(m))
	}
	return n
}

// Histories that differ in each call, at their beginning, in between, at their end, or that
// lose their oldest messages: each answer is valid, fits, and is counted as a whole.
func TestSyncFits(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	for name, history := range unrecordable {
		for _, w := range wires {
			t.Run(name+"/"+string(w.format), func(t *testing.T) {
				a := &fitAgent{SyncAgent: workertest.SyncAgent{T: t, Env: env, Session: name + "-" + string(w.format)}, wire: &w, window: 16_384}
				stays := []codec.Raw{w.user("The first question of all: what is in the log, and since when? " + strings.Repeat("Look closely. ", 9))}
				same, changed, unrecorded := 0, 0, 0
				var before string
				for i := range 60 {
					a.History = history(&w, i, stays)
					out := a.sync("")
					if have := w.tokens(a.sent); !out.Budget.WithinBudget || have > out.Budget.AvailableInput || have > out.Budget.EstimatedInput+100 {
						t.Fatalf("call %d: %d tokens of %+v", i, have, out.Budget)
					}
					if out.Changed {
						changed++
					}
					if !out.Recorded {
						unrecorded++
						if sent := fmt.Sprintf("%s", a.sent); strings.Contains(sent, "kept as turn") || strings.Contains(sent, " Recall ") {
							t.Fatalf("call %d names a place that no log has: %s", i, sent)
						}
					}
					now := second.ReplaceAllString(fmt.Sprintf("%s", a.sent), "")
					if name == "tail" {
						now = second.ReplaceAllString(fmt.Sprintf("%s", a.sent[:len(a.sent)-1]), "")
					}
					if strings.HasPrefix(now, strings.TrimSuffix(before, "]")) {
						same++
					}
					before = now
					id := fmt.Sprintf("call_%d", i)
					stays = append(stays, w.call(id)...)
					stays = append(stays, w.result(id, strings.Repeat(fmt.Sprintf("line %d of the log. ", i), 100+i%7*50)))
					if i%4 == 3 {
						stays = append(stays, w.call(id+"b")...)
						stays = append(stays, w.result(id+"b", "nothing"), w.user(fmt.Sprintf("Another question, the one of step %d: is it really so?", i)))
					}
				}
				t.Logf("prefix kept in %d of 60 calls, changed in %d, unrecorded in %d, %d turns in the log", same, changed, unrecorded, env.LoggedTurns(a.Session))
				least := 30                                           // a step is a tenth of the window
				if w.format == events.Responses && name == "window" { // it is mostly short enough, and begins later in each call
					least = 0
				}
				if same < least || changed < 30 {
					t.Errorf("prefix kept in %d of 60 calls, changed in %d", same, changed)
				}
				if n := env.LoggedTurns(a.Session); name == "tail" && n > 64 || name != "tail" && n > 12 {
					t.Errorf("%d turns in the log", n)
				}
			})
		}
	}
}

// The same request has the same answer, from another worker too. One that remembers nothing of a
// history publishes a few turns, and fits it again; a message that stays is recorded at last.
func TestSyncFitRestarts(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	stop := env.Run("a", observe.Listener{})
	w := &wires[0]
	for _, name := range []string{"head", "middle", "tail"} {
		a := &fitAgent{SyncAgent: workertest.SyncAgent{T: t, Env: env, Session: name}, wire: w, window: 16_384}
		stays := []codec.Raw{w.user("The first question of all: what is in the log, and since when? " + strings.Repeat("Look closely. ", 9))}
		recorded, second := 0, 0
		for i := range 40 {
			if second++; i >= 30 {
				second = 30
			}
			a.History = unrecordable[name](w, second, stays)
			out := a.sync("")
			if recorded++; !out.Recorded {
				recorded = 0
				if name == "head" { // which is a branch when it comes again
					continue
				}
				if again := a.sync(""); again.View != out.View || again.Recorded {
					t.Fatalf("%s: call %d: %s, then %s", name, i, out.View, again.View)
				}
			}
			if !out.Budget.WithinBudget {
				t.Fatalf("%s: call %d: %+v", name, i, out.Budget)
			}
			if i == 15 {
				stop()
				stop = env.Run("b"+name, observe.Listener{})
			}
			id := fmt.Sprintf("call_%d", i)
			stays = append(append(stays, w.call(id)...), w.result(id, strings.Repeat(fmt.Sprintf("line %d of the log. ", i), 100+i%7*20)))
		}
		if name == "middle" && recorded < 2 { // from its third time on
			t.Errorf("%s: recorded in the last %d calls", name, recorded)
		}
		if n := env.LoggedTurns(name); name != "tail" && n > 25 || n > 45 {
			t.Errorf("%s: %d turns in the log", name, n)
		}
	}
}

// A provider takes less than we think, and counts more. After its refusal of a history that is not recorded,
// the answer is a smaller history, and the limit that the refusal showed holds for later calls.
func TestSyncFitRefused(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	w := &wires[0]
	for name, refusal := range map[string]string{
		"with numbers":    `"This model's maximum context length is 9000 tokens. However, your messages resulted in %d tokens."`,
		"without numbers": `"prompt is too long"`,
	} {
		t.Run(name, func(t *testing.T) {
			a := &fitAgent{SyncAgent: workertest.SyncAgent{T: t, Env: env, Session: strings.ReplaceAll(name, " ", "-")}, wire: w, window: 16_384}
			stays := []codec.Raw{w.user("The first question of all: what is in the log, and since when? " + strings.Repeat("Look closely. ", 9))}
			refused, views := 0, map[string]bool{}
			for i := range 40 {
				a.History = unrecordable["head"](w, i, stays)
				out := a.sync("")
				for again := 0; ; again++ {
					count := w.tokens(a.sent) * 13 / 10
					if count <= 9000 {
						break
					}
					if out.Recorded {
						t.Fatalf("call %d is recorded: %+v", i, out)
					}
					if refused++; views[out.View] || again > 4 {
						t.Fatalf("call %d: refusal %d of %s with %d tokens: %+v", i, again, out.View, count, out.Budget)
					}
					views[out.View] = true
					text := refusal
					if strings.Contains(text, "%d") {
						text = fmt.Sprintf(text, count)
					}
					more := fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":%s}`, out.View, text)
					before := a.sent
					out = a.sync(more)
					if again := a.sync(more); again.View != out.View || w.tokens(a.sent) >= w.tokens(before) {
						t.Fatalf("call %d: %s, then %s for the same refusal; %d tokens, then %d", i, out.View, again.View, w.tokens(before), w.tokens(a.sent))
					}
				}
				id := fmt.Sprintf("call_%d", i)
				stays = append(append(stays, w.call(id)...), w.result(id, strings.Repeat(fmt.Sprintf("line %d of the log. ", i), 100+i%7*20)))
			}
			if n := len(env.Logged(a.Session, events.KindOverflow)); refused == 0 || refused > 6 || n != refused {
				t.Errorf("%d calls were refused, %d overflows are in the log", refused, n)
			}
		})
	}
}
