package insight

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

const (
	maxLargest   = 10
	excerptBytes = 200
)

// Xray sums up what a call has, by kind.
type Xray struct {
	rate    measure.Rate
	sums    map[name]*events.XrayKind
	tools   map[string]string // of calls, by id
	largest []events.XrayEntry
	total   int64
}

// name is a kind of a tool.
type name struct {
	kind events.ContentKind
	tool string
}

// NewXray returns one of an empty call.
func NewXray(r measure.Rate) *Xray {
	return &Xray{rate: r, sums: map[name]*events.XrayKind{}, tools: map[string]string{}}
}

// Add adds a message, with its place in the log.
func (x *Xray) Add(m *events.Message, at events.Position) {
	for i := range m.Parts {
		x.part(m, &m.Parts[i], at)
	}
}

// part adds one part of a message.
func (x *Xray) part(m *events.Message, p *events.Part, at events.Position) {
	tokens := int64(x.rate.Message(events.Message{Role: m.Role, Parts: []events.Part{*p}}))
	n := x.nameOf(m, p)
	if summary, record, ok := strings.Cut(p.Text, events.RecordIntro); ok && n.kind == events.ContentSummary {
		facts := tokens * int64(len(record)) / int64(len(summary)+len(record)+1)
		x.sum(name{kind: events.ContentRecord}, facts, 1)
		tokens -= facts
	}
	x.sum(n, tokens, 1)
	x.largest = append(x.largest, events.XrayEntry{
		Kind: n.kind, Name: n.tool, Turn: at.Turn, Index: at.Index, Tokens: tokens, Excerpt: Cut(strings.TrimSpace(partText(p)), excerptBytes),
	})
	if len(x.largest) > 2*maxLargest {
		x.cut()
	}
}

// nameOf is what a part counts as.
func (x *Xray) nameOf(m *events.Message, p *events.Part) name {
	switch p.Kind {
	case events.PartCall:
		x.tools[p.CallID] = p.Tool
		return name{events.ContentCall, p.Tool}
	case events.PartResult:
		if isPlaceholder(p.Text) {
			return name{kind: events.ContentPlaceholder}
		}
		return name{events.ContentResult, cmp.Or(p.Tool, x.tools[p.CallID])}
	case events.PartThinking:
		return name{kind: events.ContentThinking}
	case events.PartImage:
		return name{kind: events.ContentMedia}
	}
	switch {
	case strings.Contains(p.Text, "\n"+events.SummaryOpen+"\n"):
		return name{kind: events.ContentSummary}
	case isPlaceholder(p.Text):
		return name{kind: events.ContentPlaceholder}
	case m.Role == events.RoleSystem:
		return name{kind: events.ContentSystem}
	case m.Role == events.RoleAssistant:
		return name{kind: events.ContentAssistant}
	}
	return name{kind: events.ContentUser}
}

// isPlaceholder reports whether a text is one of a compaction.
func isPlaceholder(text string) bool {
	for _, begin := range []string{measure.ClearText, measure.ClearOldText, measure.TruncateText} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

func (x *Xray) sum(n name, tokens, count int64) {
	if tokens == 0 {
		return
	}
	if x.sums[n] == nil {
		x.sums[n] = &events.XrayKind{Kind: n.kind, Name: n.tool}
	}
	x.sums[n].Tokens += tokens
	x.sums[n].Count += count
	x.total += tokens
}

// Total is the sum of what was added.
func (x *Xray) Total() int64 { return x.total }

// System adds the instructions.
func (x *Xray) System(tokens int64) { x.sum(name{kind: events.ContentSystem}, tokens, 1) }

// Tools shares what all definitions of tools cost among them, by their length.
func (x *Xray) Tools(definitions events.Raw, tokens int64) {
	list, _ := codec.ReadArray(definitions) // of a turn that was taken
	whole := int64(len(definitions))
	left := tokens
	for _, d := range list {
		share := tokens * int64(len(d)) / max(whole, 1)
		x.sum(name{events.ContentTool, toolName(d)}, share, 1)
		left -= share
	}
	x.sum(name{kind: events.ContentTool}, left, 0)
}

// toolName is the name of a definition, which some dialects have within function.
func toolName(d events.Raw) string {
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
func (x *Xray) cut() {
	slices.SortStableFunc(x.largest, func(a, b events.XrayEntry) int { return cmp.Compare(b.Tokens, a.Tokens) })
	x.largest = x.largest[:min(len(x.largest), maxLargest)]
}

// Write puts the sums into an answer, and the rest of the input as the correction.
func (x *Xray) Write(out *events.XrayResponse) {
	x.sum(name{kind: events.ContentCorrection}, out.Input-x.total, 0)
	x.cut()
	out.Largest = x.largest
	for _, k := range slices.SortedFunc(maps.Values(x.sums), func(a, b *events.XrayKind) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		out.Kinds = append(out.Kinds, *k)
	}
}
