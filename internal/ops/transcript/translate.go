package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
)

// As returns the session in another dialect: the same texts, calls, results and reasoning,
// each in the form of that dialect, and as many messages as it needs. An image or unknown block
// becomes a text that names it, messages of the system become the field system where the
// dialect has no such role, and a call id that was used before gets a number. One that the dialect
// refuses becomes another, as [traits.IDs] maps it. Turns, numbers and usages stay.
func (s Session) As(f events.Format) (Session, error) {
	if f == s.Format {
		return s, nil
	}
	t := NewTranslator(s.Format, f)
	out := Session{Name: s.Name, Format: f, Missing: s.Missing}
	for _, turn := range s.Turns {
		messages, err := t.Messages(turn.Messages)
		if err != nil {
			return out, fmt.Errorf("translate %s, turn %d: %w", s.Name, turn.Number, err)
		}
		if turn.Payload, err = t.replaced(turn.Payload, messages); err != nil {
			return out, fmt.Errorf("translate %s, turn %d: %w", s.Name, turn.Number, err)
		}
		turn.Messages = messages
		out.Turns = append(out.Turns, turn)
	}
	return out, nil
}

// NewTranslator returns a translator of one session.
func NewTranslator(from, to events.Format) *Translator {
	return &Translator{from: from, to: to, tools: map[string]string{}, ids: map[string]string{}, used: map[string]int{}}
}

// replaced is the payload of a turn with other messages.
func (t *Translator) replaced(data []byte, messages []codec.Raw) ([]byte, error) {
	var p payload
	if err := codec.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	if p.System != "" {
		t.system = append([]string{p.System}, t.system...)
	}
	p.Format, p.Messages, p.System = t.to, messages, strings.Join(t.system, "\n")
	return codec.Marshal(p)
}

// Translator writes the messages of a session in another dialect, turn by turn, as
// [Session.As] does.
type Translator struct {
	from, to events.Format
	system   []string          // of the turn at hand, where messages have no such role
	tools    map[string]string // of each call
	ids      map[string]string // of calls, by those they came with
	used     map[string]int    // how often an id came
	thoughts int
}

// Messages translates those of the next turn.
func (t *Translator) Messages(in []codec.Raw) ([]codec.Raw, error) {
	read, err := t.from.ReadAll(in)
	if err != nil {
		return nil, err
	}
	out := []codec.Raw{}
	t.system = nil
	for i := range read {
		if read[i].Role == dialect.RoleSystem && !strings.Contains(t.to.Dialect().Roles, "system") {
			for _, p := range read[i].Parts {
				t.system = append(t.system, p.Content())
			}
			continue
		}
		for _, m := range t.split(t.parts(&read[i])) {
			raw, err := t.to.Write(m)
			if err != nil {
				return nil, err
			}
			out = append(out, raw)
		}
	}
	return out, nil
}

// parts are those of a message, as if compactd made them.
func (t *Translator) parts(in *dialect.Message) dialect.Message {
	m := dialect.Message{Role: in.Role}
	var thought *dialect.Part
	for _, p := range in.Parts {
		made := dialect.Part{Kind: p.Kind, Text: p.Content(), Args: p.Args, CallID: p.CallID, Tool: p.Tool, Failed: p.Failed}
		switch p.Kind {
		case dialect.PartText:
			if made.Text == "" {
				continue
			}
		case dialect.PartCall:
			if t.used[p.CallID]++; t.used[p.CallID] > 1 && p.CallID != "" {
				made.CallID = fmt.Sprintf("%s_%d", p.CallID, t.used[p.CallID])
			}
			made.CallID = t.taken(made.CallID)
			t.ids[p.CallID] = made.CallID
			if t.tools[p.CallID] = p.Tool; made.Args.Kind() != '{' {
				made.Args = must(map[string]any{"input": string(p.Args)})
			}
			if thought != nil && t.to == events.Gemini {
				made.Raw = signedCall(&made)
			}
			thought = nil
		case dialect.PartResult:
			made.CallID = cmp.Or(t.ids[p.CallID], t.taken(p.CallID))
			made.Tool = cmp.Or(made.Tool, t.tools[p.CallID])
		case dialect.PartThinking:
			if made = t.thought(made.Text); made.Raw == nil {
				continue
			}
			thought = &made
		default:
			made = dialect.Part{Text: "(" + map[bool]string{true: "image", false: "block"}[p.Kind == dialect.PartImage] + ")"}
		}
		if n := len(m.Parts); n > 0 && in.Role == dialect.RoleSystem { // the AI SDK takes one text
			m.Parts[n-1].Text += "\n" + made.Text
			continue
		}
		m.Parts = append(m.Parts, made)
	}
	return m
}

// taken is an id of a call, or another one where the dialect refuses it.
func (t *Translator) taken(id string) string {
	ids := traits.DemandsOf(t.to, "", "").IDs
	if id == "" || ids.Takes(traits.ClassOf(id)) {
		return id
	}
	return ids.Map(id, "")
}

// thought is a model's reasoning in the form of the dialect, without Raw where there is none.
func (t *Translator) thought(text string) dialect.Part {
	t.thoughts++
	p := dialect.Part{Kind: dialect.PartThinking, Text: text}
	type object = map[string]any
	switch t.to {
	case events.Responses:
		p.Raw = must(object{
			"type": "reasoning", "id": fmt.Sprintf("rs_%d", t.thoughts), "encrypted_content": "gAAA",
			"summary": []object{{"type": "summary_text", "text": text}},
		})
	case events.Gemini:
		p.Raw = must(object{"text": text, "thought": true})
	case events.Bedrock:
		p.Raw = must(object{"reasoningContent": object{"reasoningText": object{"text": text, "signature": "EqQB"}}})
	case events.AISDK:
		p.Raw = must(object{"type": "reasoning", "text": text})
	case events.Anthropic:
		p.Raw = must(object{"type": "thinking", "thinking": text, "signature": "EqQB"})
	}
	return p
}

// signedCall is a call of Gemini with a signature.
func signedCall(p *dialect.Part) codec.Raw {
	call := map[string]any{"name": p.Tool, "args": p.Args}
	if p.CallID != "" {
		call["id"] = p.CallID
	}
	return must(map[string]any{"functionCall": call, "thoughtSignature": "EqQB"})
}

// split divides a message into those that the dialect has in its place: results apart from
// words, or each item on its own.
func (t *Translator) split(m dialect.Message) (out []dialect.Message) {
	alone := t.to == events.Responses || t.to == events.NeuroLink
	put := func(role dialect.Role, p dialect.Part, joins bool) {
		if n := len(out); joins && n > 0 && out[n-1].Role == role && (!alone || out[n-1].Parts[0].Kind == dialect.PartText) {
			out[n-1].Parts = append(out[n-1].Parts, p)
			return
		}
		made := dialect.Message{Role: role, Parts: []dialect.Part{p}}
		if alone && p.Raw != nil {
			made.Raw = p.Raw
		}
		out = append(out, made)
	}
	for _, p := range m.Parts {
		role := m.Role
		if p.Kind == dialect.PartResult {
			role = t.to.Dialect().Results
		} else if role == dialect.RoleTool {
			role = dialect.RoleUser
		}
		joins := !alone || p.Kind == dialect.PartText
		if p.Kind == dialect.PartResult && t.to == events.OpenAI {
			joins = false // one message a result
		}
		put(role, p, joins)
	}
	return out
}
