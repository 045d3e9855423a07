package events

import (
	"cmp"

	"compactd/internal/events/codec"
	"compactd/internal/events/models"
)

// SessionHeader names the session of a request to compress, and of its usage.
const SessionHeader = "X-Headroom-Session-Id"

// CompressRequest is a history that a gateway is about to send to a model.
type CompressRequest struct {
	V        int         `json:"v,omitzero"`
	Model    string      `json:"model,omitzero"` // its name, perhaps as PROVIDER/NAME
	Messages []codec.Raw `json:"messages"`       // the whole history
	// TokenBudget overrides the window of the model, in tokens; 0 is its own.
	TokenBudget int64          `json:"token_budget,omitzero"`
	Config      CompressConfig `json:"config,omitzero"`
	Fallback    Format         `json:"-"` // of messages with an unclear dialect; "" is OpenAI
	Unknown     []string       `json:"-"` // fields that were ignored
}

// CompressConfig are the options of a request to compress.
type CompressConfig struct {
	SessionID string `json:"session_id,omitzero"` // any name; "" finds the session by its history
	// Mode ccr states that the model has a tool that takes the hashes of placeholders.
	Mode string `json:"mode,omitzero"`
	// Frozen is the number of first messages in the provider's cache: they are returned in the same bytes.
	// Sent messages never change within a generation, whatever its value.
	Frozen int64 `json:"frozen_message_count,omitzero"`
}

// ModeRetrieve is the mode of models that look originals up by hash.
const ModeRetrieve = "ccr"

// CompressResponse is the history to send. After a failure of compactd it is unchanged, and has a code: the
// call that waits for it goes on.
type CompressResponse struct {
	V            int           `json:"v"`
	Messages     []codec.Raw   `json:"messages"`
	TokensBefore int64         `json:"tokens_before"` // estimates
	TokensAfter  int64         `json:"tokens_after"`
	TokensSaved  int64         `json:"tokens_saved"`
	Ratio        float64       `json:"compression_ratio"`  // after by before
	Transforms   []string      `json:"transforms_applied"` // names the generation; empty if the messages are unchanged
	Hashes       []string      `json:"ccr_hashes"`         // in messages that compactd made
	Session      string        `json:"session,omitzero"`   // its name; "" if the history belongs to no session
	View         string        `json:"view,omitzero"`      // names the sent messages, for usage; "" if frozen messages keep them from being a view
	Generation   int64         `json:"generation"`
	Warnings     []SyncWarning `json:"warnings,omitzero"`
	Unknown      []string      `json:"unknown_fields,omitzero"` // of the request, that were ignored
	Code         Code          `json:"code,omitzero"`           // why the messages are unchanged
	Message      string        `json:"message,omitzero"`
	Hint         string        `json:"hint,omitzero"`
}

// UsageRequest is a provider's count for a call with a history of a [CompressResponse].
type UsageRequest struct {
	V       int       `json:"v,omitzero"`
	Session string    `json:"session"`
	View    string    `json:"view"`
	Usage   codec.Raw `json:"usage"` // in its provider's shape
}

// UsageResponse states that usage is kept for the next request of the session.
type UsageResponse struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	View    string `json:"view"`
}

// RetrieveResponse is the text that a placeholder replaces.
type RetrieveResponse struct {
	V        int    `json:"v"`
	Hash     string `json:"hash"`
	Original string `json:"original_content"`
	Tool     string `json:"tool_name,omitzero"`
	Session  string `json:"session"`
}

func (r *CompressRequest) read(env *envelope) {
	r.V = Version
	env.textAt("model", &r.Model, maxNameBytes)
	env.messages(&r.Messages)
	env.countAt("token_budget", &r.TokenBudget, 0, MaxTokens)
	ms, _ := object(env, "config", &r.Config)
	r.Unknown = appendUnknown(appendUnknown(nil, "", env.fields, *r), "config.", ms, r.Config)
	for _, f := range ms {
		if f.Value.Kind() == 'n' {
			continue
		}
		switch f.Name {
		case "session_id":
			r.Config.SessionID = env.textOf("config.", f.Name, f.Value)
		case "mode":
			r.Config.Mode = env.textOf("config.", f.Name, f.Value)
		case "frozen_message_count":
			r.Config.Frozen = env.countOf("config.", f.Name, f.Value, 0, MaxNumber)
		}
	}
}

func (r *UsageRequest) read(env *envelope) {
	r.V = Version
	env.textAt("session", &r.Session, maxNameBytes)
	env.textAt("view", &r.View, maxNameBytes)
	env.raw("usage", &r.Usage, '{')
	if r.View == "" {
		env.problems.add(CodeMissingField, "view", "is required")
	}
	if r.Usage == nil {
		env.problems.add(CodeMissingField, "usage", "is required")
	}
}

// messages reads the required list of messages of a history. Without a payload an absent list is empty.
func (e *envelope) messages(at *[]codec.Raw) {
	m, ok := e.take("messages")
	var err error
	switch {
	case ok:
		*at, err = codec.ReadFirst(codec.Clean(m), MaxSyncMessages+1)
	case e.fields != nil:
		e.require("messages", "")
	}
	switch {
	case err != nil:
		e.problems.add(CodeBadType, "messages", "must be an array")
	case len(*at) > MaxSyncMessages:
		e.problems.add(CodeTooLarge, "messages", "are more than %d", MaxSyncMessages)
	}
	for i, m := range *at {
		if m.Kind() != '{' {
			e.problems.add(CodeBadMessage, "messages", "%d is not an object", i)
		}
	}
}

// FormatOf is the dialect of messages: of the first that is recognised, else fallback, else OpenAI's chat
// completions, to which gateways convert.
func FormatOf(messages []codec.Raw, fallback Format) Format {
	for _, m := range messages {
		if k := OpenAI.kinOf(m); k != nil && k.advice == "" && k.format.Known() {
			return k.format
		}
	}
	return cmp.Or(fallback, OpenAI)
}

// ModelOf is the model of a gateway's name, perhaps PROVIDER/NAME; nil for "".
func ModelOf(name string) *Model {
	if name == "" {
		return nil
	}
	for i := range len(name) {
		if name[i] == '/' && i > 0 && i+1 < len(name) {
			return &Model{Provider: name[:i], Name: name[i+1:]}
		}
	}
	return &Model{Provider: cmp.Or(models.Maker(name), "openai"), Name: name}
}

// TokenResponse is a token for the model of a session.
type TokenResponse struct {
	V       int    `json:"v"`
	Token   string `json:"token"`
	Path    string `json:"path"` // of MCP, on the same listener
	Expires int64  `json:"expires_ms"`
}
