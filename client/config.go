package client

import (
	"bytes"
	"encoding/json"
	"fmt"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Model names the model whose window a session must fit.
type Model struct {
	// Provider chooses the table of windows, the estimator and the default dialect:
	// openai, anthropic, google, …
	Provider string `json:"provider"`
	// Name is looked up in the table of windows.
	Name string `json:"name"`
	// MaxOutputTokens is kept free for the answer; 0 is 35 % of the window, at most
	// 64,000, and less beside a large system prompt and tools.
	MaxOutputTokens int64 `json:"max_output_tokens,omitzero"`
	// ContextWindow in tokens; 0 is the table's.
	ContextWindow int64 `json:"context_window,omitzero"`
}

// Config has the settings of a whole session. A zero field keeps its value from earlier turns.
type Config struct {
	Model Model
	// Format is the dialect of the messages: openai (chat completions), openai-responses,
	// anthropic, gemini, bedrock (Converse), ai-sdk or neurolink. Default: that of the
	// session, else that of the provider.
	Format string
	// System and Tools are sent beside the messages, not among them: values that marshal to the provider's
	// fields.
	System, Tools any
	// Policy has settings of this session alone, a value that marshals to a JSON
	// object of docs/format/policy.md.
	Policy any
	// OnCompaction is called with each compaction that replaced a part of the history,
	// for logs. It is not called for those fetched after a reconnect. Must neither block
	// nor call the session.
	OnCompaction func(Compaction)
	// OnNote receives the ignored parts of accepted events, for logs. It must neither block nor call the
	// session.
	OnNote func(Note)
}

// settings is a Config as it travels; nil fields are left out.
type settings struct {
	Model  *Model    `json:"model,omitzero"`
	Format string    `json:"format,omitzero"`
	System codec.Raw `json:"system,omitzero"`
	Tools  codec.Raw `json:"tools,omitzero"`
	Policy codec.Raw `json:"policy,omitzero"`
}

func (c *Config) settings() (*settings, error) {
	out := &settings{Format: c.Format}
	if c.Model != (Model{}) {
		out.Model = &c.Model
	}
	for _, f := range []struct {
		name string
		from any
		to   *codec.Raw
	}{{"system", c.System, &out.System}, {"tools", c.Tools, &out.Tools}, {"policy", c.Policy, &out.Policy}} {
		var err error
		if *f.to, err = encode(f.from); err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.name, err)
		}
	}
	return out, nil
}

// dialect is the dialect of messages without a session.
func (s *settings) dialect() events.Format {
	if s.Format != "" {
		return events.Format(s.Format)
	}
	return events.DefaultFormat((*events.Model)(s.Model))
}

// encode writes a value as JSON on one line, nil as nothing. A value that is JSON already
// keeps its strings and numbers.
func encode(v any) (codec.Raw, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case encoded:
		return codec.Raw(v), nil
	case json.RawMessage:
		return compact(v)
	case codec.Raw:
		return compact(v)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	if raw := bytes.TrimSpace(out.Bytes()); string(raw) != "null" {
		return raw, nil
	}
	return nil, nil // a nil of a type
}

func compact(raw []byte) (codec.Raw, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
