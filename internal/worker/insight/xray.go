package insight

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize/snippet"
)

const (
	maxLargest   = 10
	excerptBytes = 200
)

// Xray sums up the tokens of a call by kind of content.
type Xray struct {
	rate    measure.Rate
	sums    map[name]*events.XrayKind
	tools   map[string]string // of calls, by id
	largest []events.XrayEntry
	total   int64
}

// name is a kind of content, and its tool if any.
type name struct {
	kind events.ContentKind
	tool string
}

// NewXray returns the x-ray of an empty call.
func NewXray(r measure.Rate) *Xray {
	return &Xray{rate: r, sums: map[name]*events.XrayKind{}, tools: map[string]string{}}
}

// Add adds a message, with its place in the log.
func (xr *Xray) Add(m *dialect.Message, at events.Position) {
	for i := range m.Parts {
		xr.part(m, &m.Parts[i], at)
	}
}

// part adds one part of a message.
func (xr *Xray) part(m *dialect.Message, p *dialect.Part, at events.Position) {
	tokens := int64(xr.rate.Message(dialect.Message{Role: m.Role, Parts: []dialect.Part{*p}}))
	n := xr.nameOf(m, p)
	if summary, record, ok := strings.Cut(p.Text, events.RecordIntro); ok && n.kind == events.ContentSummary {
		facts := tokens * int64(len(record)) / int64(len(summary)+len(record)+1)
		xr.sum(name{kind: events.ContentRecord}, facts, 1)
		tokens -= facts
	}
	xr.sum(n, tokens, 1)
	xr.largest = append(xr.largest, events.XrayEntry{
		Kind: n.kind, Name: n.tool, Turn: at.Turn, Index: at.Index, Tokens: tokens, Excerpt: snippet.Head(strings.TrimSpace(partText(p)), excerptBytes),
	})
	if len(xr.largest) > 2*maxLargest {
		xr.cut()
	}
}

// nameOf returns the kind of a part.
func (xr *Xray) nameOf(m *dialect.Message, p *dialect.Part) name {
	switch p.Kind {
	case dialect.PartCall:
		xr.tools[p.CallID] = p.Tool
		return name{events.ContentCall, p.Tool}
	case dialect.PartResult:
		if isPlaceholder(p.Text) {
			return name{kind: events.ContentPlaceholder}
		}
		return name{events.ContentResult, cmp.Or(p.Tool, xr.tools[p.CallID])}
	case dialect.PartThinking:
		return name{kind: events.ContentThinking}
	case dialect.PartImage:
		return name{kind: events.ContentMedia}
	}
	switch {
	case strings.Contains(p.Text, "\n"+events.SummaryOpen+"\n"):
		return name{kind: events.ContentSummary}
	case isPlaceholder(p.Text):
		return name{kind: events.ContentPlaceholder}
	case m.Role == dialect.RoleSystem:
		return name{kind: events.ContentSystem}
	case m.Role == dialect.RoleAssistant:
		return name{kind: events.ContentAssistant}
	}
	return name{kind: events.ContentUser}
}

// isPlaceholder reports whether a text is a placeholder of a compaction.
func isPlaceholder(text string) bool {
	begins := []string{measure.ClearText, measure.ClearOldText, measure.TruncateText}
	return slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

func (xr *Xray) sum(n name, tokens, count int64) {
	if tokens == 0 {
		return
	}
	if xr.sums[n] == nil {
		xr.sums[n] = &events.XrayKind{Kind: n.kind, Name: n.tool}
	}
	xr.sums[n].Tokens += tokens
	xr.sums[n].Count += count
	xr.total += tokens
}

// Total returns the sum of all added tokens.
func (xr *Xray) Total() int64 { return xr.total }

// System adds the instructions.
func (xr *Xray) System(tokens int64) { xr.sum(name{kind: events.ContentSystem}, tokens, 1) }

// Tools divides the tokens of all tool definitions among them, by their length.
func (xr *Xray) Tools(definitions codec.Raw, tokens int64) {
	list, _ := codec.ReadArray(definitions) // valid: from an accepted turn
	whole := int64(len(definitions))
	left := tokens
	for _, d := range list {
		share := tokens * int64(len(d)) / max(whole, 1)
		xr.sum(name{events.ContentTool, toolName(d)}, share, 1)
		left -= share
	}
	xr.sum(name{kind: events.ContentTool}, left, 0)
}

// toolName returns the name of a definition. Some dialects nest it.
func toolName(d codec.Raw) string {
	ms, err := codec.ReadObject(d)
	if err != nil {
		return ""
	}
	for _, inner := range []string{"function", "toolSpec"} {
		if f := codec.Lookup(ms, inner); f != nil && f.Kind() == '{' {
			return toolName(f)
		}
	}
	text, _ := codec.Text(codec.Lookup(ms, "name"))
	return text
}

// cut keeps the largest parts.
func (xr *Xray) cut() {
	slices.SortStableFunc(xr.largest, func(a, b events.XrayEntry) int { return cmp.Compare(b.Tokens, a.Tokens) })
	xr.largest = xr.largest[:min(len(xr.largest), maxLargest)]
}

// Write puts the sums into an answer. The rest of the input is the correction.
func (xr *Xray) Write(out *events.XrayResponse) {
	xr.sum(name{kind: events.ContentCorrection}, out.Input-xr.total, 0)
	xr.cut()
	out.Largest = xr.largest
	for _, k := range slices.SortedFunc(maps.Values(xr.sums), func(a, b *events.XrayKind) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		out.Kinds = append(out.Kinds, *k)
	}
}
