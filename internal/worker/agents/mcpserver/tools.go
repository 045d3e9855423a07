package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// Limits on the results of tools.
const (
	maxTextBytes   = 24 << 10
	maxSearchParts = 4 // requests of one search: each reads at most 16 MiB
	maxFilePages   = 8
)

var tools = []tool{
	{
		name: "recall", call: typed((*session).recall),
		description: "Return the original of a message that was removed, shortened or summarized, by its place: the turn and message that a notice or summary names. Without index: all messages of the turn.",
		schema:      `{"type":"object","properties":{"turn":{"type":"integer","minimum":1,"description":"The turn, counted from 1."},"index":{"type":"integer","minimum":0,"description":"The message of the turn, counted from 0."},"page":{"type":"integer","minimum":1,"description":"The part of a long text; absent is 1."},"session":{"type":"string","description":"The session that a place names, where it is not this one."}},"required":["turn"],"additionalProperties":false}`,
	},
	{
		name: "search_history", call: typed((*session).search),
		description: "Find a text in all messages of this session, also in those that were removed from view. Newest first, with the place of each for recall.",
		schema:      `{"type":"object","properties":{"text":{"type":"string","minLength":1,"description":"Text to find, literally, in upper or lower case."},"limit":{"type":"integer","minimum":1,"maximum":100,"description":"How many messages to find; absent is 10."}},"required":["text"],"additionalProperties":false}`,
	},
	{
		name: "what_was_dropped", call: typed((*session).dropped),
		description: "List what compactions have removed or shortened, with places for recall.",
		schema:      `{"type":"object","properties":{"since_generation":{"type":"integer","minimum":0,"description":"Only compactions after this generation; absent is all."}},"additionalProperties":false}`,
	},
	{
		name: "context_stats", call: typed((*session).stats),
		description: "Return how full the context window is, and how often the history was compacted.",
		schema:      `{"type":"object","properties":{},"additionalProperties":false}`,
	},
	{
		name: "files", call: typed((*session).files),
		description: "List the files that this session has read and changed, with the turns.",
		schema:      `{"type":"object","properties":{},"additionalProperties":false}`,
	},
	{
		name: "compact_now", call: typed((*session).compact), writes: true,
		description: "Compact the history now, before the window is full, as after a part of the work is done. Originals stay available to recall.",
		schema:      `{"type":"object","properties":{"focus":{"type":"string","description":"Content that the summary must keep, in a sentence."}},"additionalProperties":false}`,
	},
}

type recallArguments struct {
	Turn  int64  `json:"turn"`
	Index *int64 `json:"index"`
	Page  int64  `json:"page"`

	Session string `json:"session"`
}

// recall returns a page of the texts of originals. The pages of the request have whole messages of any size, so
// it reads them all and divides their text again.
func (v *session) recall(ctx context.Context, in *recallArguments) (string, error) {
	var b strings.Builder
	for page, pages := int64(1), int64(1); page <= pages; page++ {
		request := events.RecallRequest{About: v.About(), Turn: in.Turn, Index: in.Index, Page: page, Ancestor: in.Session}
		out, err := v.service.Recall(ctx, &request)
		if err != nil {
			return "", err
		}
		if !out.Known {
			return "", errUnknown
		}
		pages = out.Pages
		messages, err := out.Format.ReadAll(out.Messages)
		if err != nil {
			return "", err
		}
		for i := range messages {
			writeMessage(&b, out.Ancestor, out.Turn, out.Index+int64(i), &messages[i])
		}
		limit.Of(ctx).Free() // the next page waits for memory, and a result is small
	}
	return pageOf(b.String(), max(in.Page, 1))
}

// writeMessage writes the readable content of a message.
func writeMessage(b *strings.Builder, ancestor string, turn, index int64, m *dialect.Message) {
	fmt.Fprintf(b, "[%sturn %d, message %d, %s]\n", events.InAncestor(ancestor), turn, index, m.Role)
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Tool != "" {
			fmt.Fprintf(b, "%s ", p.Tool)
		}
		for _, text := range []string{string(p.Args), p.Text} {
			if text != "" {
				b.WriteString(text + "\n")
			}
		}
		if p.Args == nil && p.Text == "" && p.Raw != nil {
			fmt.Fprintf(b, "(a part of %d bytes that is no text)\n", len(p.Raw))
		}
	}
	b.WriteString("\n")
}

// pageOf returns one page of a text. Pages begin between characters.
func pageOf(text string, page int64) (string, error) {
	var starts []int
	for at := 0; at == 0 || at < len(text); {
		starts = append(starts, at)
		if at += maxTextBytes; at >= len(text) {
			break
		}
		for !utf8.RuneStart(text[at]) {
			at--
		}
	}
	n := int64(len(starts))
	if page > n {
		return "", events.NewInvalid(events.CodeOutOfRange, "page", fmt.Sprintf("must be between 1 and %d", n))
	}
	to := len(text)
	if page < n {
		to = starts[page]
	}
	out := text[starts[page-1]:to]
	if n > 1 {
		out += fmt.Sprintf("\n[page %d of %d]", page, n)
	}
	return out, nil
}

type searchArguments struct {
	Text  string `json:"text"`
	Limit int64  `json:"limit"`
}

func (v *session) search(ctx context.Context, in *searchArguments) (string, error) {
	limit := in.Limit
	if limit == 0 {
		limit = events.DefaultHits
	}
	var b strings.Builder
	out := &events.SearchResponse{}
	var gone int64
	found := int64(0)
	for range maxSearchParts {
		request := events.RecallRequest{About: v.About(), Text: in.Text, Limit: limit - found, Before: out.Before, Ancestor: out.Ancestor}
		var err error
		if out, err = v.service.Search(ctx, &request); err != nil {
			return "", err
		}
		if !out.Known {
			return "", errUnknown
		}
		for _, h := range out.Hits {
			fmt.Fprintf(&b, "%sturn %d, message %d, %s: %s\n", events.InAncestor(h.Ancestor), h.Turn, h.Index, h.Role, h.Excerpt)
		}
		found, gone = found+int64(len(out.Hits)), gone+out.Gone
		if out.Before == nil || found >= limit {
			break
		}
	}
	if found == 0 {
		b.WriteString("Not found.\n")
	}
	if out.Before != nil {
		fmt.Fprintf(&b, "Messages before %sturn %d were not searched.\n", events.InAncestor(out.Ancestor), out.Before.Turn+1)
	}
	if gone > 0 {
		fmt.Fprintf(&b, "%d turns are no longer stored.\n", gone)
	}
	return bounded(b.String()), nil
}

// bounded cuts a list to the limit of a tool's result.
func bounded(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	at := strings.LastIndexByte(text[:maxTextBytes], '\n') + 1
	return text[:at] + "[cut: the list is longer]\n"
}

func (v *session) stats(ctx context.Context, _ *struct{}) (string, error) {
	s, err := v.service.Stats(ctx, &events.StatsRequest{About: v.About()})
	if err != nil {
		return "", err
	}
	if !s.Known {
		return "", errUnknown
	}
	b := &s.Budget
	return fmt.Sprintf("input: %d of %d tokens (%.1f %%), level %s\ncompaction begins at: %d tokens, and aims for %d\nleft before it: %d %%\ngeneration: %d\nturns: %d\nmessages in view: %d\n",
		b.EstimatedInput, b.AvailableInput, float64(b.UsagePPM)/10_000, b.Level, b.TriggerTokens, b.TargetTokens, b.PercentLeft, s.Generation, s.Turns, s.Messages), nil
}

func (v *session) files(ctx context.Context, _ *struct{}) (string, error) {
	var b strings.Builder
	var unnamed int64
	last, pages := int64(0), int64(1)
	for last < min(pages, maxFilePages) && b.Len() < maxTextBytes {
		last++
		out, err := v.service.Files(ctx, &events.FilesRequest{About: v.About(), Page: last})
		if err != nil {
			return "", err
		}
		if !out.Known {
			return "", errUnknown
		}
		for i := range out.Files {
			f := &out.Files[i]
			fmt.Fprintf(&b, "%s: %s, turns %d to %d, %d reads, %d changes\n", f.Path, f.Kind, f.Turns[0], f.Turns[1], f.Reads, f.Changes)
		}
		pages, unnamed = out.Pages, unnamed+out.Unnamed
		limit.Of(ctx).Free() // as in recall
	}
	switch {
	case b.Len() == 0:
		b.WriteString("No files.\n")
	case last < pages:
		b.WriteString("[cut: the list is longer]\n")
	}
	if unnamed > 0 {
		fmt.Fprintf(&b, "%d files whose paths are no longer stored.\n", unnamed)
	}
	return bounded(b.String()), nil
}

type compactArguments struct {
	Focus string `json:"focus"`
}

func (v *session) compact(ctx context.Context, in *compactArguments) (string, error) {
	request := &events.Compact{ID: uuid.NewString(), Focus: in.Focus}
	if err := events.Check(request); err != nil {
		return "", err
	}
	out, err := v.service.Publish(ctx, &service.Event{Address: v.Address, Kind: events.KindCompact, ID: request.ID, Payload: request, Wait: events.DefaultWait})
	switch {
	case err != nil:
		return "", err
	case out.Decided && !out.Accepted:
		return "", events.Refuse(out.Code, out.Message, out.Hint)
	case out.Compaction == nil:
		return "The compaction is requested. It comes with a summary, before one of the next turns.\n", nil
	case !out.Compaction.Compacted:
		return fmt.Sprintf("Nothing was compacted: %s.\n", out.Compaction.Code), nil
	}
	return fmt.Sprintf("Compacted from %d to %d tokens, generation %d. The next call has the shorter history.\n", out.Compaction.TokensBefore, out.Compaction.TokensAfter, out.Compaction.Generation), nil
}
