package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// miniTrajectory is what mini-swe-agent saves: the messages of its model's API, with its own
// notes on each under extra. Source: github.com/SWE-agent/mini-swe-agent at a83fcae,
// agents/default.py and models/litellm_response_model.py.
type miniTrajectory struct {
	Info struct {
		Config struct {
			Model struct {
				Name string `json:"model_name"`
			} `json:"model"`
		} `json:"config"`
	} `json:"info"`
	Messages []codec.Raw `json:"messages"`
}

// miniMessage is one of chat completions, or of the Responses API: an item, or a whole response.
type miniMessage struct {
	chatMessage
	Type   string    `json:"type"`
	Object string    `json:"object"`
	Output codec.Raw `json:"output"` // items of a response, or the text of a call's output
	Model  string    `json:"model"`
	Usage  codec.Raw `json:"usage"`
	Extra  miniExtra `json:"extra"`
}

// miniExtra has the whole answer of the API, or a text where it could not be written.
type miniExtra struct {
	Response  codec.Raw `json:"response"`
	Timestamp float64   `json:"timestamp"`
}

// errNoMessages: an agent that never ran.
var errNoMessages = errors.New("has no messages")

func parseMiniSWEAgent(in input, r io.Reader) {
	var t miniTrajectory
	if !in.decode(r, &t) {
		return
	}
	if len(t.Messages) == 0 {
		in.bad(errNoMessages)
		return
	}
	rec := &recording{name: in.named(in.stem), format: events.OpenAI}
	var answered string
	for i, raw := range t.Messages {
		var m miniMessage
		if err := codec.Unmarshal(raw, &m); err != nil {
			in.bad(fmt.Errorf("messages[%d]: %w", i, err))
			continue
		}
		if m.Type != "" || m.Object == "response" {
			rec.format = events.Responses
		}
		s, model := m.step(raw)
		answered = cmp.Or(answered, model)
		if _, err := rec.format.ReadAll(s.messages); err != nil {
			in.bad(fmt.Errorf("messages[%d]: %w", i, err))
			continue
		}
		rec.steps = append(rec.steps, s)
	}
	rec.model = modelNamed(cmp.Or(t.Info.Config.Model.Name, answered))
	rec.put(in)
}

// step is the message as the API takes it, and the model that its answer names. The last, of
// role exit, is the agent's own.
func (m *miniMessage) step(raw codec.Raw) (s step, model string) {
	s = step{answer: m.Role == "assistant" || m.Object == "response", usage: counted(m.Usage)}
	if m.Extra.Timestamp > 0 {
		s.at = time.UnixMilli(int64(m.Extra.Timestamp * 1000)).UTC()
	}
	if response := m.Extra.Response; s.answer {
		s.usage, model = cmp.Or(s.usage, counted(codec.Get(response, "usage"))), codec.String(codec.Get(response, "model"))
	}
	switch {
	case m.Role == "exit":
	case m.Object == "response":
		model = m.Model
		_ = codec.Unmarshal(m.Output, &s.messages) // of another kind it has no items
	case m.Type != "":
		s.messages = []codec.Raw{without(raw, "extra")}
	default:
		s.messages = []codec.Raw{m.raw()}
	}
	return s, model
}

// without is an object without a member.
func without(raw codec.Raw, name string) codec.Raw {
	var out []codec.Member
	for key, value := range codec.Members(raw) {
		if key != name {
			out = append(out, codec.Member{Name: key, Value: value})
		}
	}
	return codec.WriteObject(out)
}
