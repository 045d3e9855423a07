package transcript

import (
	"errors"
	"io"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// trajectory is a .traj file of SWE-agent.
type trajectory struct {
	History []codec.Raw `json:"history"` // all messages of its agents
	Steps   []struct {
		Response    string `json:"response"`
		Observation string `json:"observation"`
	} `json:"trajectory"`
	Config codec.Raw `json:"replay_config"` // a text of JSON, or an object
}

// historyItem is a message of a history: one of chat completions in part.
type historyItem struct {
	chatMessage
	Agent   string   `json:"agent"`
	Answers []string `json:"tool_call_ids"`
}

// errNoHistory: the file is not a trajectory, or the agent never ran.
var errNoHistory = errors.New("has neither history nor trajectory")

// parseSWEAgent reads a trajectory: a session for each of its agents.
func parseSWEAgent(in input, r io.Reader) {
	var t trajectory
	if !in.decode(r, &t) {
		return
	}
	// The history is sorted by agent; the first one has the name of the file.
	var agents []string
	byAgent := map[string][]codec.Raw{}
	for _, item := range t.items(in) {
		if byAgent[item.Agent] == nil {
			agents = append(agents, item.Agent)
		}
		byAgent[item.Agent] = append(byAgent[item.Agent], item.message())
	}
	if len(agents) == 0 {
		in.bad(errNoHistory)
	}
	for i, agent := range agents {
		name := in.stem
		if i > 0 {
			name += "-" + agent
		}
		rec := &recording{name: in.named(name), format: events.OpenAI, model: modelNamed(t.model())}
		rec.chat(in, byAgent[agent])
		rec.put(in)
	}
}

// items is the history, or what the steps of the trajectory say where none was kept.
func (t *trajectory) items(in input) (out []historyItem) {
	if len(t.History) > 0 {
		return decodeEach[historyItem](in, "history", t.History)
	}
	for _, s := range t.Steps {
		out = append(out, historyItem{chatMessage: chatMessage{Role: "assistant", Content: must(s.Response)}},
			historyItem{chatMessage: chatMessage{Role: "user", Content: must(s.Observation)}})
	}
	return out
}

// message is the item as chat completions have it.
func (h historyItem) message() codec.Raw {
	m := chatMessage{Role: h.Role, Content: h.Content}
	if len(h.Calls) > len("[]") {
		m.Calls = h.Calls
	}
	if len(h.Answers) > 0 {
		m.CallID = h.Answers[0] // an answer has one; SWE-agent asserts it
	}
	return m.raw()
}

// model is the name in the agent's configuration, "" without one.
func (t *trajectory) model() string {
	config := t.Config
	if text, ok := codec.Text(config); ok {
		config = codec.Raw(text)
	}
	for _, name := range []string{"agent", "model", "name"} {
		config = codec.Get(config, name)
	}
	return codec.String(config)
}
