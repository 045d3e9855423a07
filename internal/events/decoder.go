package events

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// Digest is the identity of messages: SHA-256, cut to 128 bits, of their canonical form
// c1. See docs/format/identity.md.
type Digest [16]byte

func digestOf(canonical []byte) Digest {
	sum := sha256.Sum256(canonical)
	return Digest(sum[:16])
}

// Scanned is a turn read by a [Decoder]. Its messages have no texts, and are valid until the next turn is
// read.
type Scanned struct {
	Turn            // without Messages
	Dialect  Format // of the messages
	Contents []dialect.Message
	Digest   Digest // of the messages
	// Settings is the identity of the turn's other content: the model, the policy, the system prompt, the
	// tools, and the turn that it replaces.
	Settings dialect.Key
	// SystemKey and ToolsKey are the identities of system prompt and tools, 0 for none; see [SettingKey].
	SystemKey, ToolsKey dialect.Key
	// Fault is the reason to refuse the turn, unless it was taken before: see [Format.Complete] and
	// [MaxTurnMessages].
	Fault error

	data []byte // that it was decoded from
}

// Decoder decodes turns to be measured: one pass over the payload checks it, finds the
// fields, weighs the texts and writes the canonical form. The zero value is ready. A
// Decoder is for one goroutine. It uses its memory again. See docs/adr/0023.
type Decoder struct {
	// ID is the expected id of the next turn, such as that of its header: it is used without a copy.
	ID string

	scan     codec.Scan
	reader   dialect.Reader
	lists    dialect.Lists
	turn     Scanned
	counts   []codec.Member // of the usage
	usage    Usage
	fields   []codec.Member // of the envelope except the messages
	msgs     []dialect.Message
	settings []byte // input of its key
	models   map[string]*knownModel
}

// knownModel is a model named by turns: agents have few, and seldom change them.
type knownModel struct {
	Model
	settings dialect.Key // of a turn that sets nothing but this model
}

// Turn decodes the payload of a session.turn. session is the dialect of its session, "" for one that has none
// yet. It refuses the same as [DecodeTurn] and [Format.ReadAll], with the same [*Invalid]. The turn is valid
// until the next one is decoded.
func (d *Decoder) Turn(data []byte, session Format) (*Scanned, error) {
	t := &d.turn
	if data = codec.Clean(data); !d.onePass(data, session) {
		var err error
		if t, err = d.inSteps(data, session); err != nil {
			return nil, err
		}
	}
	parts := 0
	for i := range t.Contents {
		parts += len(t.Contents[i].Parts)
	}
	if bad := TooMany(len(t.Contents), parts); bad != nil {
		t.Fault = bad
	}
	return t, nil
}

// walk returns the reader, at a value to be scanned.
func (d *Decoder) walk(raw codec.Raw) *dialect.Reader {
	d.scan.Reset()
	d.reader = dialect.Reader{Walker: d.scan.Walk(raw), Into: &d.lists}
	return &d.reader
}

// onePass decodes a turn in one pass. It is false for a turn that is not valid, or has its format after its
// messages.
func (d *Decoder) onePass(data []byte, session Format) bool {
	if len(data) > MaxTurnBytes {
		return false
	}
	d.turn, d.fields = Scanned{data: data}, d.fields[:0]
	w, t, messages, valid := d.walk(data), &d.turn, 0, true
	w.Object(func(key []byte) {
		if string(key) == "messages" && w.Kind() == '[' {
			t.Dialect = dialectOf(formatOf(codec.Lookup(d.fields, "format")), session, d.knownModel().model())
			messages++
			valid = d.messages(w) && valid
			return
		}
		d.fields = append(d.fields, codec.Member{Name: codec.NameOf(key), Value: d.field(w, key)})
	})
	if w.End() != nil || !valid || messages != 1 {
		return false
	}
	env := envelope{fields: d.fields, decoder: d}
	env.based()
	env.check()
	env.turn(&t.Turn)
	if len(env.problems) > 0 || dialectOf(t.Format, session, t.Model) != t.Dialect {
		return false
	}
	d.hashSettings(d.knownModel())
	return true
}

// field reads a field that is not the messages, and the members of the usage with it.
func (d *Decoder) field(w *dialect.Reader, key []byte) codec.Raw {
	if string(key) != "usage" || w.Kind() != '{' {
		return w.Value()
	}
	d.counts = d.counts[:0]
	return w.Object(func(key []byte) {
		d.counts = append(d.counts, codec.Member{Name: codec.NameOf(key), Value: w.Value()})
	})
}

// model is the model, nil for none.
func (k *knownModel) model() *Model {
	if k == nil {
		return nil
	}
	return &k.Model
}

// formatOf is the format that a field names, "" if it is unknown.
func formatOf(v codec.Raw) Format {
	if d := dialect.Of(codec.TextBytes(v)); d != nil {
		return Format(d.Name)
	}
	return ""
}

// Bounds of the remembered models.
const (
	maxModels = 1 << 10
	maxModel  = 1 << 9 // bytes of one
)

// knownModel is the model of the fields, nil if there is none, or it is not valid.
func (d *Decoder) knownModel() *knownModel {
	v := codec.Lookup(d.fields, "model")
	if !codec.IsSet(v) {
		return nil
	}
	if known := d.models[string(v)]; known != nil {
		return known
	}
	env := envelope{fields: d.fields}
	m := env.model(nil)
	if len(env.problems) > 0 {
		return nil
	}
	known := &knownModel{Model: *m}
	if len(v) <= maxModel {
		if d.models == nil || len(d.models) == maxModels {
			d.models = map[string]*knownModel{}
		}
		d.models[string(v)] = known
	}
	return known
}

// id is the id of a turn, the expected one without a copy.
func (e *envelope) id() string {
	if d := e.decoder; d != nil && d.ID != "" {
		if v, _ := e.take("id"); string(codec.TextBytes(v)) == d.ID && ValidEventID(d.ID) {
			return d.ID
		}
	}
	return e.text("id")
}

// turnModel is the model of a turn, a known one without a copy.
func (e *envelope) turnModel() *Model {
	if e.decoder != nil {
		if known := e.decoder.knownModel(); known != nil {
			return &known.Model
		}
	}
	return e.model(nil)
}

// inSteps decodes any turn.
func (d *Decoder) inSteps(data []byte, session Format) (*Scanned, error) {
	turn, err := DecodeTurn(data)
	if err != nil {
		return nil, err
	}
	raws := turn.Messages
	t := &d.turn
	*t = Scanned{data: data, Turn: *turn, Dialect: dialectOf(turn.Format, session, turn.Model)}
	t.Messages = nil
	msgs, err := t.Dialect.ReadAll(raws)
	if err != nil {
		return nil, err
	}
	d.messages(d.walk(codec.WriteArray(raws)))
	t.Fault = t.Dialect.Complete(msgs)
	d.hashSettings(nil)
	return t, nil
}

// messages scans the array of messages at w. It is false if one is not valid, may be of another dialect, or
// has a call or result without an id.
func (d *Decoder) messages(w *dialect.Reader) bool {
	t, in := &d.turn, d.turn.Dialect.Dialect()
	d.msgs = d.msgs[:0]
	d.lists.Reset()
	d.scan.Write()
	ok := true
	w.Array(func() {
		if w.Kind() != '{' {
			w.Value()
			ok = false
			return
		}
		m, err := in.Read(w)
		d.lists.Keep(&m)
		ok = ok && err == nil && m.Complete() && !t.Dialect.suspect(&m)
		d.msgs = append(d.msgs, m)
	})
	t.Contents, t.Digest = d.msgs, digestOf(d.scan.Canonical())
	d.scan.Stop()
	return ok
}

// dialectOf is the dialect of messages: named by their turn, else the session's, else the provider's.
func dialectOf(named, session Format, m *Model) Format {
	switch {
	case named != "":
		return named
	case session != "":
		return session
	default:
		return DefaultFormat(m)
	}
}

// hashSettings computes the identity of the turn's settings. For most turns it is known with their model.
func (d *Decoder) hashSettings(known *knownModel) {
	t, b := &d.turn, d.settings[:0]
	if t.ReplacesFrom > 0 || t.Policy != nil || t.System != nil || t.Tools != nil {
		known = nil
	}
	if known != nil && known.settings != 0 {
		t.Settings = known.settings
		return
	}
	part := func(name string, value []byte) {
		b = binary.BigEndian.AppendUint64(append(b, name...), uint64(len(value)))
		b = append(b, value...)
	}
	if t.ReplacesFrom > 0 { // replacing turns is an act, so the id of the event belongs to it
		part("replaces", append(binary.BigEndian.AppendUint64(nil, uint64(t.ReplacesFrom)), t.ID...))
	}
	if t.Model != nil {
		part("model", appendModel(nil, t.Model))
	}
	if t.Policy != nil {
		part("policy", d.canonical(t.Policy))
	}
	if t.System != nil {
		canonical := d.canonical(t.System)
		part("system", canonical)
		t.SystemKey = dialect.KeyOf(canonical)
	}
	if t.Tools != nil {
		canonical := d.canonical(t.Tools)
		part("tools", canonical)
		t.ToolsKey = dialect.KeyOf(canonical)
	}
	if d.settings, t.Settings = b, dialect.KeyOf(b); known != nil {
		known.settings = t.Settings
	}
}

// appendModel appends the fields of a model that belong to its identity.
func appendModel(b []byte, m *Model) []byte {
	b = append(strconv.AppendQuote(b, m.Provider), ' ')
	b = append(strconv.AppendQuote(b, m.Name), ' ')
	b = append(strconv.AppendInt(b, m.MaxOutputTokens, 10), ' ')
	return strconv.AppendInt(b, m.ContextWindow, 10)
}

// canonical is the canonical form of a system prompt, of tools or of a policy, without cache marks.
func (d *Decoder) canonical(raw codec.Raw) []byte {
	d.scan.Reset()
	d.scan.Write()
	w := dialect.Reader{Walker: d.scan.Walk(raw)}
	w.Setting()
	return d.scan.Canonical()
}

// SettingKey is the identity of a system prompt, of tools or of a policy, 0 for none. They are
// JSON without half surrogates, as [DecodeTurn] returns it.
func SettingKey(raw codec.Raw) dialect.Key {
	if raw == nil {
		return 0
	}
	return dialect.KeyOf(new(Decoder).canonical(raw))
}
