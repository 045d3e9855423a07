package events

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

// Version is the version of the wire contract.
const Version = 1

// VersionExpect is the version of a session.turn that names its base or the place where it branched off, see
// [Expect] and [Fork]. A worker without these refuses the turn.
const VersionExpect = 2

// Bounds of an event.
const (
	MaxTurnBytes = 4 << 20 // of a whole session.turn

	// MaxTurnMessages and MaxTurnParts bound the messages of a turn, and the contents in them: the cost of a
	// turn grows with their number, and a tiny one takes 29 bytes.
	MaxTurnMessages = 1 << 12
	MaxTurnParts    = 1 << 14
	MaxTokens       = 1 << 40 // of any token count
	MaxNumber       = 1 << 31 // of a turn or generation
	maxNameBytes    = 256     // of an id, a provider or a model
	MaxOutputBytes  = 1 << 20 // of messages in a session.compacted
)

// Model names the model whose window a session must fit.
type Model struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	// MaxOutputTokens is the output reserve, 0 when the agent sets none.
	MaxOutputTokens int64 `json:"max_output_tokens,omitzero"`
	// ContextWindow overrides the table of windows, in tokens; 0 uses the table.
	ContextWindow int64 `json:"context_window,omitzero"`
}

// Usage is a provider's count for one call, in tokens, read from the shape of the provider or an SDK.
type Usage struct {
	Input       int64 // without the cached parts
	CacheRead   int64
	CacheCreate int64
	Output      int64
}

// Turn is a session.turn: the messages appended since the last one.
type Turn struct {
	ID           string      `json:"id,omitzero"`
	Number       int64       `json:"turn,omitzero"`          // counts from 1; 0 when the agent does not number
	Generation   int64       `json:"generation,omitzero"`    // compaction the agent had applied when it made the call
	ReplacesFrom int64       `json:"replaces_from,omitzero"` // retract turns from this number on; 0 for none
	Model        *Model      `json:"model,omitzero"`         // of the next call; nil = unchanged
	Format       Format      `json:"format,omitzero"`        // "" = unchanged
	System       codec.Raw   `json:"system,omitzero"`        // nil = unchanged
	Tools        codec.Raw   `json:"tools,omitzero"`         // nil = unchanged
	Messages     []codec.Raw `json:"messages"`               // in the dialect of the session
	Usage        *Usage      `json:"-"`                      // read from the provider's shape, in which it travels
	UsageProblem string      `json:"-"`                      // why a usage that was there could not be read; the turn counts without it
	Policy       codec.Raw   `json:"policy,omitzero"`        // nil = unchanged

	Expect *Expect `json:"expect,omitzero"`      // base that the turn is for; nil for any
	Fork   *Fork   `json:"forked_from,omitzero"` // place where the session branched off, in its first turn; nil for none
}

// WireTurn is the payload of a session.turn, with a usage in the shape of a provider.
type WireTurn[U any] struct {
	V int `json:"v"`
	Turn
	Usage U `json:"usage,omitzero"`
}

// Expect is the base of a turn: the state that the session must have before it; otherwise the turn is
// refused. Before the first turn its number is 0.
type Expect struct {
	Turn   int64  `json:"turn"`   // the last turn taken
	Digest Digest `json:"digest"` // of the session up to it; see [Digest.With]
}

// Fork is the place where a session branched off: after a turn of another session of its tenant, or 0 for the
// beginning.
type Fork struct {
	Session string `json:"session"`
	Turn    int64  `json:"turn"`
}

// DecodeTurn reads the payload of a session.turn. Its error is an [*Invalid]
// that lists every problem; where the payload was one JSON object the turn comes
// beside it, without the fields that are wrong. Messages, system and tools are
// checked for being JSON only: their shape depends on the session's dialect.
// The turn holds parts of data, which must not change afterwards.
func DecodeTurn(data []byte) (*Turn, error) {
	env, err := openEnvelope(data, MaxTurnBytes)
	if err != nil {
		return nil, err
	}
	t := &Turn{}
	env.based()
	env.check()
	env.turn(t)
	if m, ok := env.take("messages"); !ok {
		env.problems.add(CodeMissingField, "messages", "is required")
	} else if t.Messages, err = codec.ReadArray(codec.Clean(m)); err != nil {
		env.problems.add(CodeBadType, "messages", "must be an array")
	}
	return t, env.problems.err()
}

// DecodeNewTurn is [DecodeTurn] for a turn that is not stored yet.
func DecodeNewTurn(data []byte) (*Turn, error) {
	t, err := DecodeTurn(data)
	if err != nil {
		return t, err
	}
	return t, TooMany(len(t.Messages), 0)
}

// TooMany is an [*Invalid] for a turn with too many messages or contents, else nil.
func TooMany(messages, parts int) error {
	switch {
	case messages > MaxTurnMessages:
		return NewInvalid(CodeTooManyMessages, "messages", fmt.Sprintf("are %d, more than the %d of a turn", messages, MaxTurnMessages))
	case parts > MaxTurnParts:
		return NewInvalid(CodeTooManyMessages, "messages", fmt.Sprintf("have %d contents, more than the %d of a turn", parts, MaxTurnParts))
	}
	return nil
}

// turn reads the fields of a turn except its messages.
func (e *envelope) turn(t *Turn) {
	t.ID = e.id()
	t.Number = e.count("turn", 1, MaxNumber)
	t.Generation = e.count("generation", 0, MaxNumber)
	t.ReplacesFrom = e.count("replaces_from", 1, MaxNumber)
	t.Model = e.turnModel()
	e.formatAt(&t.Format)
	e.raw("system", &t.System, '"', '[')
	e.raw("tools", &t.Tools, '[')
	e.raw("policy", &t.Policy, '{')
	t.Usage, t.UsageProblem = e.usage()
	t.Expect, t.Fork = e.expect(), e.fork(nil)
	e.known(t.Format)
	if t.ReplacesFrom > 0 && t.Number > 0 && t.Number != t.ReplacesFrom {
		e.problems.add(CodeOutOfRange, "turn", "must equal replaces_from")
	}
}

// envelope is the outer object of an event, read strictly. Its methods with a pointer read a field, or without the
// field check the value there: so a request without a payload has the same rules.
type envelope struct {
	fields   []codec.Member
	later    int64    // a version that the event may have too
	decoder  *Decoder // that remembers ids and models, nil for none
	problems problems
}

func decodeEnvelope(data []byte, limit int) (*envelope, error) {
	e, err := openEnvelope(data, limit)
	if err == nil {
		e.check()
	}
	return e, err
}

// decode reads a payload of at most limit bytes. Beside its error, an [*Invalid], it returns the fields that
// could be read.
func decode[A any](data []byte, limit int, read func(*envelope) A) (out A, err error) {
	env, err := decodeEnvelope(data, limit)
	if err != nil {
		return out, err
	}
	out = read(env)
	return out, env.problems.err()
}

// Decode reads the payload of a request. Beside its error, an [*Invalid] that lists every problem, it returns the fields
// that could be read. The request holds parts of data, which must not change afterwards.
func Decode[R any, P Payload[R]](data []byte) (*R, error) {
	limit := MaxRequestBytes
	switch any((*R)(nil)).(type) {
	case *AttachRequest, *CheckRequest:
		limit = MaxCheckBytes
	case *CompressRequest, *SyncRequest:
		limit = MaxSyncBytes
	}
	return decode(data, limit, func(env *envelope) *R {
		r := new(R)
		P(r).read(env)
		return r
	})
}

// Payload is the type *R of a request R.
type Payload[R any] interface {
	*R
	Checkable
}

// Checkable is a request with one list of rules for its fields, with a payload and without one.
type Checkable interface{ read(e *envelope) }

// Check checks the fields of a request like its decoder; a zero one is absent. It completes them: absent ones get their
// defaults, and spaces around words are cut. The decoder alone checks the bytes and the depth of JSON, and attachments.
func Check(r Checkable) error {
	env := &envelope{}
	r.read(env)
	return env.problems.err()
}

// maxFields limits the fields of a payload that may be larger than a turn: each takes many times its bytes in memory. Its
// objects have at most the bytes of a turn.
const maxFields = 1 << 16

// openEnvelope is decodeEnvelope without check.
func openEnvelope(data []byte, limit int) (*envelope, error) {
	if len(data) > limit {
		return nil, invalidf(CodeTooLarge, "", "the event has more than %d bytes", limit)
	}
	err := codec.Check(data)
	trailing := errors.Is(err, codec.ErrTrailing)
	switch {
	case err == nil && codec.Raw(data).Kind() == '[':
		return nil, NewInvalid(CodeBadJSON, "", "the payload is "+arrayOf(data))
	case codec.Raw(data).Kind() != '{' || err != nil && !trailing:
		return nil, NewInvalid(CodeBadJSON, "", "the payload is not one JSON object")
	case trailing:
		return nil, NewInvalid(CodeTrailingData, "", "data follows the JSON object")
	case codec.TooDeep(data):
		return nil, invalidf(CodeBadJSON, "", "the payload nests deeper than %d", codec.MaxDepth)
	}
	e, most := &envelope{}, math.MaxInt
	if limit > MaxTurnBytes {
		most = maxFields + 1
	}
	e.fields, _ = codec.AppendFirst(make([]codec.Member, 0, codec.FewMembers), data, most) // an object: it is checked
	if limit > MaxTurnBytes && len(e.fields) > maxFields {
		return nil, invalidf(CodeTooLarge, "", "the payload has more than %d fields", maxFields)
	}
	return e, nil
}

// check notes keys that occur twice, and a version other than ours.
func (e *envelope) check() {
	var names codec.Names
	for i, f := range e.fields {
		if names.Repeated(e.fields, i) {
			e.problems.add(CodeDuplicateKey, fieldName(f.Name), "occurs twice")
		}
	}
	e.version(0)
}

// version notes a version other than ours.
func (e *envelope) version(v int64) {
	if e.countAt("v", &v, 1, MaxNumber); v != 0 && v != Version && v != e.later {
		e.problems.add(CodeBadVersion, "v", "is %d; this worker speaks %d", v, Version)
	}
}

// based accepts the version of turns with a base, if the turn has one. null is none.
func (e *envelope) based() {
	_, base := e.take("expect")
	if _, fork := e.take("forked_from"); base || fork {
		e.later = VersionExpect
	}
}

// fieldName keeps a foreign key fit for a message to people.
func fieldName(s string) string {
	if !ValidID(s) || len(s) > 32 {
		return "a key"
	}
	return s
}

// take returns a field; null counts as absent.
func (e *envelope) take(name string) (codec.Raw, bool) {
	v := codec.Lookup(e.fields, name)
	return v, codec.IsSet(v)
}

// takeOr is take; without a payload the field is the JSON of in.
func takeOr[T any](e *envelope, name string, in *T) (codec.Raw, bool) {
	v, ok := e.take(name)
	if ok || in == nil || e.fields != nil {
		return v, ok
	}
	v, _ = codec.Marshal(in) // an error leaves no object
	return v, true
}

// require notes that a field is absent; rest goes on with the sentence.
func (e *envelope) require(name, rest string) {
	if _, ok := e.take(name); !ok {
		e.problems.add(CodeMissingField, name, "%s", "is required"+rest)
	}
}

// only refuses other fields. It is for requests whose answer would mislead without them.
func (e *envelope) only(names ...string) {
	for _, f := range e.fields {
		if !slices.Contains(names, f.Name) {
			e.problems.add(CodeBadType, f.Name, "is not a field of the request: %s", strings.Join(names, ", "))
		}
	}
}

// UnknownFields names the members of a payload for which its struct has no field, at most 8. They are ignored; one may
// be misspelt.
func UnknownFields(data []byte, of any) []string {
	var room [codec.FewMembers]codec.Member
	all, err := codec.AppendMembers(room[:0], data)
	if err != nil {
		return nil
	}
	return appendUnknown(nil, "", all, of)
}

// appendUnknown appends the names of the members of the object parent for which the struct has no field.
func appendUnknown(out []string, parent string, members []codec.Member, of any) []string {
	known := map[string]bool{"v": true}
	for _, f := range reflect.VisibleFields(reflect.Indirect(reflect.ValueOf(of)).Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = true
	}
	for i := range members {
		if !known[members[i].Name] && len(out) < maxNamed {
			out = append(out, parent+fieldName(members[i].Name))
		}
	}
	return out
}

func (e *envelope) text(name string) (s string) {
	e.textAt(name, &s, maxNameBytes)
	return s
}

// textAt is text for a request.
func (e *envelope) textAt(name string, at *string, most int) {
	if v, ok := e.take(name); ok {
		*at = e.boundedText("", name, v, most)
	} else {
		*at = e.plain(name, *at, most)
	}
}

// textOf reads a member of the object parent, "" for the envelope.
func (e *envelope) textOf(parent, name string, v codec.Raw) string {
	return e.boundedText(parent, name, v, maxNameBytes)
}

func (e *envelope) boundedText(parent, name string, v codec.Raw, most int) string {
	s, ok := codec.Text(v)
	if !ok {
		e.problems.add(CodeBadType, parent+name, "must be a string")
	}
	return e.plain(parent+name, s, most)
}

// plain returns a text of at most most bytes without control characters, "" for any other.
func (e *envelope) plain(field, s string, most int) string {
	switch {
	case len(s) > most:
		e.problems.add(CodeTooLarge, field, "is longer than %d bytes", most)
		return ""
	case hasControl(s):
		e.problems.add(CodeBadType, field, "holds control characters")
		return ""
	}
	return s
}

func (e *envelope) count(name string, low, high int64) (n int64) {
	e.countAt(name, &n, low, high)
	return n
}

// countAt is count for a request.
func (e *envelope) countAt(name string, at *int64, low, high int64) {
	if v, ok := e.take(name); ok {
		*at = e.countOf("", name, v, low, high)
	} else if *at != 0 {
		*at = e.within(name, *at, low, high)
	}
}

// countedAt is countAt for a field whose value may be 0; nil if absent.
func (e *envelope) countedAt(name string, at **int64, low, high int64) {
	if v, ok := e.take(name); ok {
		n := e.countOf("", name, v, low, high)
		*at = &n
	} else if *at != nil {
		e.within(name, **at, low, high)
	}
}

// countOf reads a member of the object parent, "" for the envelope.
func (e *envelope) countOf(parent, name string, v codec.Raw, low, high int64) int64 {
	n, ok := codec.Integer(v)
	if !ok {
		e.problems.add(CodeBadType, parent+name, "must be a whole number")
		return 0
	}
	return e.within(parent+name, n, low, high)
}

// within returns a number from low to high, 0 for any other.
func (e *envelope) within(field string, n, low, high int64) int64 {
	if n < low || n > high {
		e.problems.add(CodeOutOfRange, field, "must be between %d and %d", low, high)
		return 0
	}
	return n
}

// raw reads a field whose JSON kind is one of kinds, cleaned.
func (e *envelope) raw(name string, at *codec.Raw, kinds ...codec.Kind) {
	if v, ok := e.take(name); ok {
		*at = codec.Clean(v)
	}
	if *at != nil && !slices.Contains(kinds, at.Kind()) {
		e.problems.add(CodeBadType, name, "has the wrong type")
		*at = nil
	}
}

// format reads the field of that name.
func (e *envelope) format(at *Format) {
	e.formatAt(at)
	e.known(*at)
}

// formatAt is format without the check of its value.
func (e *envelope) formatAt(at *Format) {
	v, _ := e.take("format")
	if known := formatOf(v); known != "" {
		*at = known
		return
	}
	e.textAt("format", (*string)(at), maxNameBytes)
}

func (e *envelope) known(f Format) {
	if f != "" && !f.Known() {
		e.problems.join(unknownFormat())
	}
}

// modelField is the path before a model's fields in problems.
const modelField = "model."

func (e *envelope) model(in *Model) *Model {
	v, ok := takeOr(e, "model", in)
	if !ok || e.tooLarge("model", v) {
		return nil
	}
	var room [codec.FewMembers]codec.Member
	ms, err := codec.AppendMembers(room[:0], v)
	if err != nil {
		e.problems.add(CodeBadType, "model", "must be an object")
		return nil
	}
	m := &Model{}
	var names codec.Names
	for i, f := range ms {
		if names.Repeated(ms, i) {
			e.problems.add(CodeDuplicateKey, modelField+fieldName(f.Name), "occurs twice")
		}
		if f.Value.Kind() == 'n' {
			continue
		}
		switch f.Name {
		case "provider":
			m.Provider = e.textOf(modelField, f.Name, f.Value)
		case "name":
			m.Name = e.textOf(modelField, f.Name, f.Value)
		case "max_output_tokens":
			m.MaxOutputTokens = e.countOf(modelField, f.Name, f.Value, 1, MaxTokens)
		case "context_window":
			m.ContextWindow = e.countOf(modelField, f.Name, f.Value, 1, MaxTokens)
		}
	}
	if m.ContextWindow > 0 && m.MaxOutputTokens >= m.ContextWindow {
		e.problems.add(CodeOutOfRange, modelField+"max_output_tokens", "must be less than context_window")
	}
	return m
}

// Header begins every outcome.
type Header struct {
	V  int    `json:"v"`
	ID string `json:"id"`
}

// Cause names the event that led to an outcome.
type Cause struct {
	Seq uint64 `json:"seq"`
	ID  string `json:"id,omitzero"`
}

// Through is the turn boundary up to which an outcome holds.
type Through struct {
	Seq  uint64 `json:"seq"`
	Turn int64  `json:"turn"`
}
