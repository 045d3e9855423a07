package render

import (
	"fmt"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// restored adds a restored result or text of a skill.
func (r *renderer) restored(e *measure.Entry) error {
	own := *e
	first, err := r.part(&own)
	if err != nil {
		return err
	}
	shown, name := []dialect.Part{first}, skillName
	if first.Kind == dialect.PartResult {
		name, err = r.nameOf(e, &first)
	} else {
		shown, err = r.words(e)
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	for i := range shown {
		text.WriteString(shown[i].Text)
	}
	out := text.String()
	if room, _ := e.Kept(); int64(codec.Units(out)) > room {
		out = r.cutText(e, out, room, shareOf(&own, shown))
	}
	return r.addMade(textMessage(dialect.RoleUser, fmt.Sprintf(measure.RestoreHead, name, e.Turn)+out))
}

// skillName replaces the name of a skill whose text is a message.
const skillName = "text of a skill"

// words lists the texts of an entry that is a run of words.
func (r *renderer) words(e *measure.Entry) (out []dialect.Part, err error) {
	source, err := r.source(e)
	if err != nil {
		return nil, err
	}
	m, err := r.read(source)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Parts[e.Part : e.Part+e.Parts] {
		if p.Kind == dialect.PartText {
			out = append(out, p)
		}
	}
	return out, nil
}

// nameOf is the file that a restored result was read from, or its tool.
func (r *renderer) nameOf(e *measure.Entry, result *dialect.Part) (string, error) {
	tool := result.Tool
	if e.CallSeq() != 0 {
		call, err := r.part(&measure.Entry{Seq: e.CallSeq(), Index: uint32(e.Call >> 32), Part: uint32(e.Call), Parts: 1})
		if err != nil {
			return "", err
		}
		if path := dialect.PathRead(call.Tool, call.Args); path != "" && e.Flags.Has(measure.FlagRead) {
			return path, nil
		}
		tool = call.Tool
	}
	if e.Flags.Has(measure.FlagRead) {
		return dialect.PathInText(result.Text), nil
	}
	return headUnits(tool, measure.MaxToolUnits), nil
}
