package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// File is a file to send with the next call.
type File struct {
	Name string // for notices
	// Type is pdf, docx, xlsx, pptx, svg, image, audio, video or archive; any other is
	// text.
	Type string
	// Text is the file as text, or its beginning. Without it only Type and Bytes count.
	Text string
	// Bytes is the size of the whole file; 0 is that of Text.
	Bytes int64
}

// Attach has the files of the next call, and its other additions.
type Attach struct {
	Files    []File
	Messages []any // to be added, as those of Check
	// Focus is content that summaries of files must keep.
	Focus string
	// Policy has fields of the policy for this request alone, such as
	// {"files":{"summarize":false}}.
	Policy json.RawMessage
	// Wait is the longest wait for models that summarize files, at most a minute. 0 is 20 s. Negative waits
	// for none: the worker writes summaries without a model.
	Wait time.Duration
}

// Attached has the text to send for each file of a call.
type Attached struct {
	// Budget is that of the call with the sent parts of files.
	Budget Budget
	// FileBudget bounds the cost of the files together, in tokens.
	FileBudget int64
	Files      []AttachedFile // in their order
}

// Actions of a worker on a file.
const (
	FileWhole   = string(events.FileWhole)      // it is sent whole
	FilePreview = string(events.FilePreview)    // its first characters, since it is very large
	FileCut     = string(events.FileCut)        // its beginning
	FileSummary = string(events.FileSummarized) // a summary
	FileLeftOut = string(events.FileLeftOut)    // nothing; the text is a notice for the user
)

// AttachedFile is the part of one file to send.
type AttachedFile struct {
	Name, Action string
	// Text is the text to send. It is empty for a whole file without text, and a notice for the user if the
	// file is left out.
	Text                string
	Tokens, WholeTokens int64
	Model               string // of a summary; "embedded" is no model
}

// Attach returns the parts of files to send with the next call, so that it fits: whole files, cut ones, or
// summaries. It changes nothing: sent files are published like any message. As Check it counts all turns that
// this session has published.
func (s *Session) Attach(ctx context.Context, a Attach) (Attached, error) {
	in := events.AttachRequest{About: s.at.About(), Focus: a.Focus, Policy: codec.Raw(a.Policy)}
	s.mu.Lock()
	in.NextCall = s.nextCall()
	await := events.Await{Seq: s.acked}
	s.mu.Unlock()
	if a.Wait != 0 {
		ms := min(max(a.Wait, 0), events.MaxSummaryWait).Milliseconds()
		in.SummaryMS = &ms
	}
	in.Attachments = make([]events.AttachedFile, len(a.Files))
	for i, f := range a.Files {
		in.Attachments[i] = events.AttachedFile{Name: f.Name, Type: f.Type, Bytes: f.Bytes}
		if f.Text != "" || f.Bytes == 0 {
			in.Attachments[i].Text = &f.Text
		}
	}
	var err error
	if in.Messages, err = encodeAll(a.Messages); err != nil {
		return Attached{}, err
	}
	if await.Waits() {
		stats := events.StatsRequest{About: s.at.About(), Await: await}
		if err := s.c.request(ctx, events.SubjectStats, stats, &events.StatsResponse{}); err != nil {
			return Attached{}, err
		}
	}
	r, err := request.Attach(ctx, s.c.nc, in)
	if err != nil {
		return Attached{}, refusedBy(events.SubjectAttach, err)
	}
	out := Attached{Budget: budget(r.Budget), FileBudget: r.FileBudget, Files: make([]AttachedFile, len(r.Attachments))}
	for i, f := range r.Attachments {
		out.Files[i] = AttachedFile{f.Name, string(f.Action), f.Text, f.Tokens, f.WholeTokens, f.Model}
	}
	return out, nil
}

// nextCall is the next call of the session, as far as the session has it. The caller
// holds the lock.
func (s *Session) nextCall() events.NextCall {
	c := events.NextCall{Format: s.dialect()}
	if m := s.config.Model; m != nil { // the worker may not have it yet
		c.Provider, c.Model, c.MaxOutputTokens, c.ContextWindow = m.Provider, m.Name, m.MaxOutputTokens, m.ContextWindow
	}
	return c
}

// encodeAll encodes messages as they travel.
func encodeAll(messages []any) (out []codec.Raw, err error) {
	for i, m := range messages {
		raw, err := encode(m)
		if err != nil {
			return nil, fmt.Errorf("encode message %d: %w", i, err)
		}
		out = append(out, raw)
	}
	return out, nil
}
