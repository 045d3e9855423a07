package events

import "compactd/internal/events/codec"

// SubjectCheck compares the next call of a session with its window, before it is
// made.
const SubjectCheck = "compactd.check"

// Bounds of a check.
const (
	// MaxCheckBytes bounds a request: the messages may be those of a whole turn.
	MaxCheckBytes = MaxTurnBytes
	// MaxAttachments is how many attachments it may name.
	MaxAttachments = 100
)

// CheckRequest checks whether the next call fits: the current history, and what is to be
// added to it. An absent field has the value of the session.
type CheckRequest struct {
	V       int    `json:"v,omitzero"`
	Tenant  string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Session string `json:"session"`

	// The model of the call; a provider without a model is its default.
	Provider        string `json:"provider,omitzero"`
	Model           string `json:"model,omitzero"`
	MaxOutputTokens int64  `json:"max_output_tokens,omitzero"`
	ContextWindow   int64  `json:"context_window,omitzero"`

	// Format is the dialect of Messages where the session has none yet; absent is
	// the provider's.
	Format Format `json:"format,omitzero"`
	// Messages and Tokens are to be added: messages are measured as those of a turn
	// are, tokens are the caller's own count.
	Messages []Raw `json:"messages,omitzero"`
	Tokens   int64 `json:"tokens,omitzero"`
	// System and Tools take the place of the session's.
	System Raw `json:"system,omitzero"`
	Tools  Raw `json:"tools,omitzero"`
	// Attachments are files of which only type and size are known.
	Attachments []Attachment `json:"attachments,omitzero"`
	Await
}

// Attachment is a file that may be sent along.
type Attachment struct {
	Type  string `json:"type,omitzero"` // pdf, docx, xlsx, pptx, svg, image, audio, video, archive; others are text
	Bytes int64  `json:"bytes"`
}

// CheckResponse is the budget of the next call.
type CheckResponse struct {
	V               int     `json:"v"`
	Known           bool    `json:"known"`            // false: the answer is for a first call
	Fits            bool    `json:"fits"`             // as budget.within_budget
	Level           Level   `json:"level"`            // as budget.level
	Room            int64   `json:"room_tokens"`      // available − estimated input; negative by what is too much
	Added           int64   `json:"added_tokens"`     // what the request adds, uncorrected
	NeedsCompaction bool    `json:"needs_compaction"` // as budget.should_compact
	Generation      int64   `json:"generation"`
	Through         Through `json:"through"`
	Budget          Budget  `json:"budget"` // of the call
	// Attachments are the costs of those in the request, and whether to send each: the
	// smallest first, as long as they fit the share for files.
	Attachments []AttachmentCost `json:"attachments,omitzero"`
}

// AttachmentCost is what one attachment costs.
type AttachmentCost struct {
	Tokens int64 `json:"tokens"`
	Send   bool  `json:"send"`
}

// Address names the session of the request.
func (r *CheckRequest) Address() Address { return Address{r.Tenant, r.Session} }

// RequestedModel is the model of the request.
func (r *CheckRequest) RequestedModel() Model {
	return Model{Provider: r.Provider, Name: r.Model, MaxOutputTokens: r.MaxOutputTokens, ContextWindow: r.ContextWindow}
}

// DecodeCheckRequest reads the payload of a compactd.check. Its error is an
// [*Invalid]. The request holds parts of data, which must not change afterwards.
func DecodeCheckRequest(data []byte) (*CheckRequest, error) {
	env, err := decodeEnvelope(data, MaxCheckBytes)
	if err != nil {
		return nil, err
	}
	a := env.address()
	r := &CheckRequest{
		V: Version, Tenant: a.Tenant, Session: a.Session,
		Provider: env.text("provider"), Model: env.text("model"), MaxOutputTokens: env.count("max_output_tokens", 1, MaxTokens),
		ContextWindow: env.count("context_window", 1, MaxTokens), Format: Format(env.text("format")),
		Tokens: env.count("tokens", 0, MaxTokens), System: env.raw("system", '"', '['), Tools: env.raw("tools", '['),
		Attachments: env.attachments("attachments"), Await: env.await(),
	}
	if r.Format != "" && !r.Format.Known() {
		env.problems.join(errUnknownFormat)
	}
	if m, ok := env.take("messages"); ok {
		if r.Messages, err = codec.ReadArray(codec.Clean(m)); err != nil {
			env.problems.add(CodeBadType, "messages", "must be an array")
		}
	}
	return r, env.problems.err()
}

// attachments reads an array of objects with type and bytes.
func (e *envelope) attachments(name string) []Attachment {
	v, ok := e.take(name)
	if !ok {
		return nil
	}
	list, err := codec.ReadArray(v)
	if err != nil {
		e.problems.add(CodeBadType, name, "must be an array")
	} else if len(list) > MaxAttachments {
		e.problems.add(CodeTooLarge, name, "are more than %d", MaxAttachments)
		return nil
	}
	out := make([]Attachment, 0, len(list))
	for _, raw := range list {
		out = append(out, e.attachment(name, raw))
	}
	return out
}

func (e *envelope) attachment(name string, raw Raw) (out Attachment) {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		e.problems.add(CodeBadType, name, "must hold objects")
		return out
	}
	if kind := codec.Lookup(ms, "type"); kind != nil && kind.Kind() != 'n' {
		out.Type = e.textOf(name+".", "type", kind)
	}
	if n := codec.Lookup(ms, "bytes"); n == nil || n.Kind() == 'n' {
		e.problems.add(CodeMissingField, name+".bytes", "is required")
	} else {
		out.Bytes = e.countOf(name+".", "bytes", n, 0, MaxTokens)
	}
	return out
}
