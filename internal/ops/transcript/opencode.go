package transcript

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"compactd/internal/events/codec"
	"compactd/internal/ops/sqlite"
)

// opencode keeps a session, its messages and their parts in a file each, or since 2026 in rows
// of a database; `opencode export` writes them as one document. Source: github.com/anomalyco/opencode,
// packages/opencode/src/session/message-v2.ts and session.sql.ts, src/storage/json-migration.ts.

type opencodeSession struct {
	ID     string          `json:"id"`
	Revert *opencodeRevert `json:"revert"`
}

// opencodeRevert is from where on the user took back.
type opencodeRevert struct {
	MessageID string `json:"messageID"`
	PartID    string `json:"partID"`
}

type opencodeMessage struct {
	Info  opencodeInfo   `json:"info"`
	Parts []opencodePart `json:"parts"`
}

type opencodeInfo struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Time struct {
		Created int64 `json:"created"` // in Unix milliseconds
	} `json:"time"`
	Provider string          `json:"providerID"`
	Model    string          `json:"modelID"`
	Summary  codec.Raw       `json:"summary"` // of an answer true: it is a compaction's
	Tokens   *opencodeTokens `json:"tokens"`
	Error    *struct {
		Name string `json:"name"`
	} `json:"error"`
}

type opencodeTokens struct {
	Input     int64 `json:"input"` // without those of caches
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	Cache     struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

type opencodePart struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Text     string `json:"text"`
	Ignored  bool   `json:"ignored"`
	Mime     string `json:"mime"`
	Metadata struct {
		Anthropic struct {
			Signature string `json:"signature"`
		} `json:"anthropic"`
	} `json:"metadata"`
	Tokens *opencodeTokens `json:"tokens"` // of step-finish
	CallID string          `json:"callID"`
	Tool   string          `json:"tool"`
	State  struct {
		Status   string    `json:"status"`
		Input    codec.Raw `json:"input"`
		Output   string    `json:"output"`
		Error    string    `json:"error"`
		Metadata struct {
			Interrupted bool   `json:"interrupted"`
			Output      string `json:"output"`
		} `json:"metadata"`
		Time struct {
			Compacted int64 `json:"compacted"`
		} `json:"time"`
		Attachments []codec.Raw `json:"attachments"`
	} `json:"state"`
}

// opencodeCutOff is the result that opencode gives a call that was cut off.
const opencodeCutOff = "[Tool execution was interrupted]"

// parseOpencode reads a database, or one session: an export, or the file of its own among the others. A
// session that was moved into a database is read there alone.
func parseOpencode(in input, r io.Reader) {
	br := bufio.NewReader(r)
	if isDatabase(br) {
		opencodeRows(in)
		return
	}
	var d struct {
		Info     *opencodeSession `json:"info"`
		Messages []codec.Raw      `json:"messages"`
		opencodeSession
	}
	if !in.decode(br, &d) {
		return
	}
	if d.Info == nil {
		if in.wanted(d.ID) {
			in.opencode(&d.opencodeSession, in.opencodeFiles(d.ID))
		}
		return
	}
	in.opencode(d.Info, decodeEach[opencodeMessage](in, "messages", d.Messages))
}

// opencodeFiles reads the messages that belong to the file of a session.
func (in input) opencodeFiles(session string) (out []opencodeMessage) {
	root := filepath.Dir(filepath.Dir(filepath.Dir(in.path)))
	for path := range in.jsonFiles(filepath.Join(root, "message", filepath.Base(session))) {
		var m opencodeMessage
		if !in.jsonFile(path, &m.Info) {
			continue
		}
		for path := range in.jsonFiles(filepath.Join(root, "part", filepath.Base(m.Info.ID))) {
			var p opencodePart
			if in.jsonFile(path, &p) {
				m.Parts = append(m.Parts, p)
			}
		}
		out = append(out, m)
	}
	return out
}

func (in input) jsonFiles(dir string) func(func(string) bool) {
	return func(yield func(string) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			in.bad(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".json") && !yield(filepath.Join(dir, e.Name())) {
				return
			}
		}
	}
}

func (in input) jsonFile(path string, v any) bool {
	f, err := open(path)
	if err == nil {
		defer f.Close()
		err = decodeDocument(f, v)
	}
	if err != nil {
		in.bad(fmt.Errorf("%s: %w", filepath.Base(path), err))
	}
	return err == nil
}

// opencode makes a session of messages, in the order in which opencode reads them.
func (in input) opencode(s *opencodeSession, messages []opencodeMessage) {
	slices.SortStableFunc(messages, func(a, b opencodeMessage) int {
		return cmp.Or(cmp.Compare(a.Info.Time.Created, b.Info.Time.Created), strings.Compare(a.Info.ID, b.Info.ID))
	})
	d := &dialogue{name: "opencode-" + cmp.Or(s.ID, in.stem), absent: opencodeCutOff}
	var pruned []int64 // when opencode cleared results of its own accord
	for i := range messages {
		m := &messages[i]
		slices.SortStableFunc(m.Parts, func(a, b opencodePart) int { return strings.Compare(a.ID, b.ID) })
		for _, p := range m.Parts {
			if at := p.State.Time.Compacted; at > 0 {
				pruned = append(pruned, at)
			}
		}
	}
	slices.Sort(pruned)
	for i := range messages {
		m := &messages[i]
		if r := s.Revert; r != nil && m.reverted(r) {
			d.lacks(missingBranch, 1)
			continue
		}
		at := time.UnixMilli(m.Info.Time.Created).UTC()
		for len(pruned) > 0 && pruned[0] <= m.Info.Time.Created {
			d.compaction(at, "")
			pruned = slices.DeleteFunc(pruned, func(t int64) bool { return t <= m.Info.Time.Created })
		}
		m.put(d, at)
	}
	d.put(in)
}

// reverted leaves the message with the parts that were not taken back.
func (m *opencodeMessage) reverted(r *opencodeRevert) bool {
	if m.Info.ID == r.MessageID && r.PartID != "" {
		m.Parts = slices.DeleteFunc(m.Parts, func(p opencodePart) bool { return p.ID >= r.PartID })
		return len(m.Parts) == 0
	}
	return m.Info.ID >= r.MessageID
}

func (m *opencodeMessage) put(d *dialogue, at time.Time) {
	if m.Info.Role == "user" {
		m.question(d, at)
		return
	}
	has := func(p opencodePart) bool { return p.Type != "step-start" && p.Type != "reasoning" }
	switch e := m.Info.Error; {
	case string(m.Info.Summary) == "true":
		if e == nil {
			d.compaction(at, m.text())
		}
	case e == nil, e.Name == "MessageAbortedError" && slices.ContainsFunc(m.Parts, has):
		m.answered(d, at)
	}
}

func (m *opencodeMessage) text() string {
	return joined(m.Parts, func(p *opencodePart) string {
		if p.Type != "text" {
			return ""
		}
		return p.Text
	})
}

// question takes a message of the user. Files of text are in texts beside them.
func (m *opencodeMessage) question(d *dialogue, at time.Time) {
	var blocks []block
	for _, p := range m.Parts {
		switch {
		case p.Type == "compaction":
			return // the question for a summary
		case p.Type == "text" && !p.Ignored:
			blocks = append(blocks, texts(p.Text)...)
		case p.Type == "file" && p.Mime != "text/plain" && p.Mime != "application/x-directory":
			blocks = append(blocks, d.media("file"))
		case p.Type == "subtask":
			blocks = append(blocks, textBlock("The following tool was executed by the user"))
		}
	}
	d.user(at, blocks...)
}

// answered takes an answer: one call of the model for each of its steps.
func (m *opencodeMessage) answered(d *dialogue, at time.Time) {
	var blocks []block
	var calls []opencodePart
	step := func(u *opencodeTokens) {
		d.answer(at, qualified(m.Info.Provider, m.Info.Model), u.counted(), blocks...)
		for _, p := range calls {
			text, failed := p.result()
			d.result(at, p.CallID, text, failed)
			for range p.State.Attachments {
				d.lacks(missingMedia, 1)
			}
		}
		blocks, calls = nil, nil
	}
	for _, p := range m.Parts {
		switch p.Type {
		case "step-start":
			step(nil)
		case "step-finish":
			step(cmp.Or(p.Tokens, m.Info.Tokens))
		case "text":
			blocks = append(blocks, texts(p.Text)...)
		case "reasoning":
			if p.Text != "" {
				blocks = append(blocks, thinkingBlock(p.Text, p.Metadata.Anthropic.Signature))
			} else {
				d.lacks(missingReasoning, 1)
			}
		case "tool":
			blocks, calls = append(blocks, callBlock(p.CallID, p.Tool, p.State.Input)), append(calls, p)
		}
	}
	step(m.Info.Tokens)
}

// result is that of a call, as the model got it before opencode cleared it.
func (p *opencodePart) result() (text string, failed bool) {
	switch s := &p.State; {
	case s.Status == "completed":
		return s.Output, false
	case s.Status == "error" && s.Metadata.Interrupted && s.Metadata.Output != "":
		return s.Metadata.Output, false
	case s.Status == "error":
		return s.Error, true
	}
	return opencodeCutOff, true
}

func (t *opencodeTokens) counted() *lineUsage {
	if t == nil {
		return nil
	}
	return &lineUsage{Input: t.Input, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write, Output: t.Output + t.Reasoning}
}

// opencodeRows reads the sessions of a database, each with its messages and parts alone in
// memory.
func opencodeRows(in input) {
	db, err := sqlite.Open(in.path)
	if err != nil {
		in.bad(err)
		return
	}
	defer db.Close()
	o := opencodeDB{in: in, messages: map[string][]opencodeRow{}, parts: map[string][]opencodeRow{}, reverts: map[string]*opencodeRevert{}}
	if err := o.find(db); err != nil {
		in.bad(err)
	}
	for _, id := range slices.Sorted(maps.Keys(o.messages)) {
		if in.wanted(id) {
			in.opencode(&opencodeSession{ID: id, Revert: o.reverts[id]}, o.read(id))
		}
	}
}

// opencodeDB has the places of a database's rows.
type opencodeDB struct {
	in              input
	messageT, partT *sqlite.Table
	messages, parts map[string][]opencodeRow // by session, and by message
	reverts         map[string]*opencodeRevert
}

type opencodeRow struct {
	id  string
	ref sqlite.Ref
}

// find reads what belongs where, without the texts. An error ends it; what was found stays.
func (o *opencodeDB) find(db *sqlite.DB) (err error) {
	if _, err = eachRow(db, "session", []string{"id", "revert"}, o.revert); err != nil {
		return err
	}
	if o.messageT, err = eachRow(db, "message", []string{"id", "session_id", "data"}, keep(o.messages)); err != nil {
		return err
	}
	o.partT, err = eachRow(db, "part", []string{"id", "message_id", "data"}, keep(o.parts))
	return err
}

func (o *opencodeDB) revert(row []any, _ sqlite.Ref) {
	var r opencodeRevert
	if text, ok := row[1].(string); ok && codec.Unmarshal([]byte(text), &r) == nil && r.MessageID != "" {
		o.reverts[fmt.Sprint(row[0])] = &r
	}
}

func keep(in map[string][]opencodeRow) func([]any, sqlite.Ref) {
	return func(row []any, ref sqlite.Ref) {
		id, _ := row[0].(string)
		if of, _ := row[1].(string); id != "" && of != "" {
			in[of] = append(in[of], opencodeRow{id, ref})
		}
	}
}

func eachRow(db *sqlite.DB, name string, columns []string, do func([]any, sqlite.Ref)) (*sqlite.Table, error) {
	t, err := db.Table(name, columns...)
	if err != nil {
		return nil, err
	}
	for ref, err := range t.Rows() {
		if err != nil {
			return t, err
		}
		row, err := t.Read(ref)
		if err != nil {
			return t, err
		}
		do(row, ref)
	}
	return t, nil
}

// read reads the messages of a session.
func (o *opencodeDB) read(session string) (out []opencodeMessage) {
	for _, row := range o.messages[session] {
		var m opencodeMessage
		if !o.row(o.messageT, row, &m.Info) {
			continue
		}
		m.Info.ID = row.id
		for _, row := range o.parts[row.id] {
			var p opencodePart
			if o.row(o.partT, row, &p) {
				p.ID = row.id
				m.Parts = append(m.Parts, p)
			}
		}
		out = append(out, m)
	}
	return out
}

func (o *opencodeDB) row(t *sqlite.Table, row opencodeRow, v any) bool {
	values, err := t.Read(row.ref)
	if err == nil {
		text, _ := values[2].(string)
		err = codec.Unmarshal([]byte(text), v)
	}
	if err != nil {
		o.in.bad(fmt.Errorf("%s: %w", row.id, err))
	}
	return err == nil
}
