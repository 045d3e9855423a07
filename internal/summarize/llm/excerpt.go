package llm

import (
	"fmt"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize"
	"compactd/internal/summarize/attached"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/snippet"
)

// Bounds of one message in a prompt, in bytes.
const (
	userBytes      = 16_000
	assistantBytes = 8_000
	argumentBytes  = 2_000
	resultBytes    = 2_000
	blockNameBytes = 40
)

// round is a message of a user, or an assistant's text and calls with their results: the smallest piece that
// a prompt leaves out.
type round struct {
	text   string
	tokens int64
	from   int // index of its first message
}

// rounds writes the messages of a sanitized input down, each under a line such as
// "[turn 12] user". The lines of a message begin with a space, so that none can
// pass for one of ours.
func rounds(in *summarize.Input) []round {
	w := excerpt{tools: map[string]string{}}
	var out []round
	for i := range in.Messages {
		m := &in.Messages[i]
		text := w.message(m)
		if text == "" {
			continue
		}
		if len(out) == 0 || begins(m) {
			out = append(out, round{from: i})
		}
		r := &out[len(out)-1]
		r.text += text
		r.tokens += tokens(text)
	}
	return out
}

// begins reports whether a message begins a round: one that answers no call.
func begins(m *summarize.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Kind == dialect.PartResult {
			return false
		}
	}
	return true
}

// asciiPerToken is the density of code; prose has 4.
const asciiPerToken = 3

// tokens counts a text on the safe side: one for a character that is not ASCII.
func tokens(s string) int64 {
	other := 0
	for _, r := range s {
		if r >= 0x80 {
			other++
		}
	}
	return int64((len(s)+asciiPerToken-1)/asciiPerToken + other)
}

// excerpt writes messages down.
type excerpt struct {
	tools map[string]string // names by the id of the call
}

func (w *excerpt) message(m *summarize.Message) string {
	var b strings.Builder
	for i := range m.Parts {
		if m.Role == dialect.RoleUser && m.Parts[i].Kind == dialect.PartText {
			w.user(&b, m.Turn, m.Parts[i].Text)
			continue
		}
		head, text := w.part(m.Role, &m.Parts[i])
		write(&b, m.Turn, head, text)
	}
	return b.String()
}

func write(b *strings.Builder, turn int64, head, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "[turn %d] %s\n%s", turn, head, indented(text))
	}
}

// user writes a message of the user, apart by who wrote its parts.
func (w *excerpt) user(b *strings.Builder, turn int64, text string) {
	text, _ = extract.UserText(text)
	for _, p := range attached.Split(snippet.CutMiddle(stripped(text), userBytes)) {
		head := "user"
		if !p.Own {
			head = "attached by user"
		}
		write(b, turn, head, p.Text)
	}
}

// part returns the heading of a part, and the part; "" for parts that a summary does not use: reasoning, and
// attachments that will be there again.
func (w *excerpt) part(role dialect.Role, p *dialect.Part) (head, text string) {
	switch p.Kind {
	case dialect.PartText:
		return string(role), snippet.CutMiddle(stripped(p.Text), assistantBytes)
	case dialect.PartCall:
		w.tools[p.CallID] = snippet.Clip(p.Tool, snippet.IdentUnits)
		return "call of " + snippet.Clip(p.Tool, snippet.IdentUnits), snippet.CutMiddle(string(p.Args), argumentBytes)
	case dialect.PartResult:
		head = strings.TrimSpace("result of " + w.tools[p.CallID])
		if p.Failed {
			head += ", failed"
		}
		return head, snippet.CutMiddle(stripped(p.Text), resultBytes) + strings.Repeat("\n"+snippet.ImagePlace, min(p.Images, 8))
	case dialect.PartImage:
		return string(role), extract.PlaceOf(p)
	case dialect.PartOther:
		return string(role), otherPlace(p)
	default:
		return "", ""
	}
}

// attachments are the types of blocks that an agent puts into its history again
// after each compaction.
var attachments = map[string]bool{"attachment": true, "skill_discovery": true, "skill_listing": true}

var blockName = lazyregexp.New(`^[a-z][a-z0-9_.-]*$`)

// otherPlace names a block of a type that is not known here.
func otherPlace(p *dialect.Part) string {
	for name, v := range codec.Members(p.Raw) {
		if s, _ := codec.Text(v); name == "type" && !attachments[s] && len(s) <= blockNameBytes && blockName().MatchString(s) {
			return "[" + s + "]"
		}
	}
	return ""
}

var markdownImage = lazyregexp.New(`!\[[^\]\n]{0,200}\]\([^)\n]*\)`)

// stripped names images instead of showing them.
func stripped(s string) string {
	if !strings.Contains(s, "![") {
		return s
	}
	return markdownImage().ReplaceAllString(s, snippet.ImagePlace)
}

// indented puts a space before every line of a text.
func indented(s string) string {
	return " " + lineBreaks.Replace(s) + "\n"
}

// lineBreaks are all characters that a model may take for a line break.
var lineBreaks = strings.NewReplacer(
	"\r\n", "\n ", "\n", "\n ", "\r", "\n ", "\v", "\n ", "\f", "\n ", "\u0085", "\n ", "\u2028", "\n ", "\u2029", "\n ",
)
