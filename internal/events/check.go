package events

import (
	"time"

	"compactd/internal/events/codec"
)

// SubjectCheck compares the next call of a session with its window, before it is
// made.
const SubjectCheck = "compactd.check"

// Bounds of a check.
const (
	// MaxCheckBytes bounds a request: its messages may be as large as a whole turn.
	MaxCheckBytes = MaxTurnBytes
	// MaxAttachments bounds its attachments.
	MaxAttachments = 100
)

// CheckRequest checks whether the next call fits: the current history with the additions. An absent field has
// the value of the session.
type CheckRequest struct {
	About

	NextCall
	// Attachments are files with only type and size.
	Attachments []Attachment `json:"attachments,omitzero"`
	Await

	Unknown []string `json:"-"` // fields that were ignored
}

// NextCall is the next call of a session, before it is made. Absent fields are as in the session.
type NextCall struct {
	// The model of the call; a provider without a model is its default.
	Provider        string `json:"provider,omitzero"`
	Model           string `json:"model,omitzero"`
	MaxOutputTokens int64  `json:"max_output_tokens,omitzero"`
	ContextWindow   int64  `json:"context_window,omitzero"`

	// Format is the dialect of Messages if the session has none yet; absent is the provider's.
	Format Format `json:"format,omitzero"`
	// Messages and Tokens are the additions: messages are measured like those of a turn, tokens are the
	// caller's own count.
	Messages []codec.Raw `json:"messages,omitzero"`
	Tokens   int64       `json:"tokens,omitzero"`
	// System and Tools replace the session's.
	System codec.Raw `json:"system,omitzero"`
	Tools  codec.Raw `json:"tools,omitzero"`
}

// RequestedModel is the model of the call.
func (c *NextCall) RequestedModel() Model {
	return Model{Provider: c.Provider, Name: c.Model, MaxOutputTokens: c.MaxOutputTokens, ContextWindow: c.ContextWindow}
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
	Room            int64   `json:"room_tokens"`      // available − estimated input; negative if the input is too large
	Added           int64   `json:"added_tokens"`     // by the request, uncorrected
	NeedsCompaction bool    `json:"needs_compaction"` // as budget.should_compact
	Generation      int64   `json:"generation"`
	Through         Through `json:"through"`
	Budget          Budget  `json:"budget"` // of the call
	// Attachments are the costs of the request's attachments, and whether to send each: the smallest first,
	// while they fit into the share for files.
	Attachments []AttachmentCost `json:"attachments,omitzero"`
	// Unknown are fields of the request that were ignored.
	Unknown []string `json:"unknown_fields,omitzero"`
}

// AttachmentCost is the cost of one attachment.
type AttachmentCost struct {
	Tokens int64 `json:"tokens"`
	Send   bool  `json:"send"`
}

func (r *CheckRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.nextCall(&r.NextCall)
	listAt(env, "attachments", &r.Attachments, MaxAttachments, env.attachment)
	r.Unknown = appendUnknown(nil, "", env.fields, CheckRequest{})
	env.await(&r.Await)
}

// nextCall reads the fields of a call.
func (e *envelope) nextCall(c *NextCall) {
	e.textAt("provider", &c.Provider, maxNameBytes)
	e.textAt("model", &c.Model, maxNameBytes)
	e.countAt("max_output_tokens", &c.MaxOutputTokens, 1, MaxTokens)
	e.countAt("context_window", &c.ContextWindow, 1, MaxTokens)
	e.format(&c.Format)
	e.countAt("tokens", &c.Tokens, 0, MaxTokens)
	e.raw("system", &c.System, '"', '[')
	e.raw("tools", &c.Tools, '[')
	if m, ok := e.take("messages"); ok {
		var err error
		if c.Messages, err = codec.ReadArray(codec.Clean(m)); err != nil {
			e.problems.add(CodeBadType, "messages", "must be an array")
		}
	}
	e.problems.join(TooMany(len(c.Messages), 0))
}

// listAt reads an array of at most most values.
func listAt[T any](e *envelope, name string, at *[]T, most int, read func(name string, raw codec.Raw) T) {
	v, ok := e.take(name)
	if !ok {
		return
	}
	list, err := codec.ReadArray(v)
	if err != nil {
		e.problems.add(CodeBadType, name, "must be an array")
	} else if len(list) > most {
		e.problems.add(CodeTooLarge, name, "are more than %d", most)
		return
	}
	*at = make([]T, 0, len(list))
	for _, raw := range list {
		*at = append(*at, read(name, raw))
	}
}

func (e *envelope) attachment(name string, raw codec.Raw) (out Attachment) {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		e.problems.add(CodeBadType, name, "must hold objects")
		return out
	}
	if kind := codec.Lookup(ms, "type"); codec.IsSet(kind) {
		out.Type = e.textOf(name+".", "type", kind)
	}
	if n := codec.Lookup(ms, "bytes"); !codec.IsSet(n) {
		e.problems.add(CodeMissingField, name+".bytes", "is required")
	} else {
		out.Bytes = e.countOf(name+".", "bytes", n, 0, MaxTokens)
	}
	return out
}

// SubjectAttach decides which parts of files enter the next call of a session, before they are in its
// history.
const SubjectAttach = "compactd.attach"

// Longest wait for models that summarize files, by default and at most. After it the embedded summarizer
// writes.
const (
	DefaultSummaryWait = 20 * time.Second
	MaxSummaryWait     = time.Minute
)

// AttachRequest is about files for the next call.
type AttachRequest struct {
	About

	NextCall
	// Attachments are the files.
	Attachments []AttachedFile `json:"attachments"`
	// Policy has fields of the policy for this request alone.
	Policy codec.Raw `json:"policy,omitzero"`
	// Focus is content that summaries of files must keep.
	Focus string `json:"focus,omitzero"`
	// SummaryMS is the longest wait for models, in milliseconds; nil is [DefaultSummaryWait]. With 0 the
	// embedded summarizer writes at once.
	SummaryMS *int64 `json:"summary_ms,omitzero"`
}

// AttachedFile is one file.
type AttachedFile struct {
	Name string `json:"name,omitzero"` // for notices
	Type string `json:"type,omitzero"` // as in an [Attachment]
	// Text is the file as text, or its beginning; nil if only type and size are known.
	Text *string `json:"text,omitzero"`
	// Bytes is the size of the whole file; absent is that of Text.
	Bytes int64 `json:"bytes,omitzero"`
}

// FileAction is the treatment of a file.
type FileAction string

// Actions on files.
const (
	FileWhole      FileAction = "whole"    // all of it enters
	FilePreview    FileAction = "preview"  // its first characters enter, since it is very large
	FileCut        FileAction = "cut"      // its beginning enters
	FileSummarized FileAction = "summary"  // a summary enters
	FileLeftOut    FileAction = "left_out" // nothing enters; the text is a notice for the user
)

// AttachResponse has the text to send for each file.
type AttachResponse struct {
	V          int     `json:"v"`
	Known      bool    `json:"known"` // false: the answer is for a first call
	Fits       bool    `json:"fits"`  // as budget.within_budget
	Level      Level   `json:"level"` // as budget.level
	Generation int64   `json:"generation"`
	Through    Through `json:"through"`
	Budget     Budget  `json:"budget"`             // of the call with the parts of files that enter
	FileBudget int64   `json:"file_budget_tokens"` // for all files together
	// Attachments are those of the request, in their order.
	Attachments []AttachedText `json:"attachments"`
}

// AttachedText is the part of one file to send.
type AttachedText struct {
	Name   string     `json:"name,omitzero"`
	Action FileAction `json:"action"`
	// Text is the text to send; for a file that was left out a notice for the user. Absent for a file without
	// text.
	Text        string `json:"text,omitzero"`
	Tokens      int64  `json:"tokens"`       // of the part that enters
	WholeTokens int64  `json:"whole_tokens"` // of the whole file
	// Model and Usage are those of a summary; "embedded" needs no model.
	Model string       `json:"model,omitzero"`
	Usage SummaryUsage `json:"usage,omitzero"`
}

// SummaryWait is the longest wait for models.
func (r *AttachRequest) SummaryWait() time.Duration {
	if r.SummaryMS == nil {
		return DefaultSummaryWait
	}
	return time.Duration(*r.SummaryMS) * time.Millisecond
}

func (r *AttachRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.nextCall(&r.NextCall)
	if r.Attachments == nil {
		env.require("attachments", "")
	}
	listAt(env, "attachments", &r.Attachments, MaxAttachments, env.attachedFile)
	env.raw("policy", &r.Policy, '{')
	env.wordsAt("focus", &r.Focus, MaxFocusBytes)
	env.countedAt("summary_ms", &r.SummaryMS, 0, MaxSummaryWait.Milliseconds())
}

func (e *envelope) attachedFile(name string, raw codec.Raw) (out AttachedFile) {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		e.problems.add(CodeBadType, name, "must hold objects")
		return out
	}
	sized := false
	for _, m := range ms {
		if m.Value.Kind() == 'n' {
			continue
		}
		switch m.Name {
		case "name":
			out.Name = e.textOf(name+".", "name", m.Value)
		case "type":
			out.Type = e.textOf(name+".", "type", m.Value)
		case "bytes":
			out.Bytes, sized = e.countOf(name+".", "bytes", m.Value, 0, MaxTokens), true
		case "text":
			if text, ok := codec.Text(codec.Clean(m.Value)); ok {
				out.Text = &text
			} else {
				e.problems.add(CodeBadType, name+".text", "must be a string")
			}
		}
	}
	switch {
	case out.Text == nil && !sized:
		e.problems.add(CodeMissingField, name+".bytes", "or text is required")
	case out.Text != nil && !sized:
		out.Bytes = int64(len(*out.Text))
	case out.Text != nil && out.Bytes < int64(len(*out.Text)):
		e.problems.add(CodeOutOfRange, name+".bytes", "is less than text has")
	}
	return out
}
