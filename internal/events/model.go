package events

import (
	"iter"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// The model of messages, which package dialect owns.
type (
	// Message is one message of any dialect.
	Message = dialect.Message
	// Part is the smallest piece of a message that an edit may change.
	Part = dialect.Part
	// PartKind is the content of a part.
	PartKind = dialect.PartKind
	// Role is the author of a message.
	Role = dialect.Role
	// Key represents a name where only equality counts; see [dialect.Key].
	Key = dialect.Key
)

// Roles of all dialects.
const (
	RoleSystem    = dialect.RoleSystem
	RoleUser      = dialect.RoleUser
	RoleAssistant = dialect.RoleAssistant
	RoleTool      = dialect.RoleTool
)

// The kinds of parts.
const (
	PartText     = dialect.PartText
	PartCall     = dialect.PartCall
	PartResult   = dialect.PartResult
	PartThinking = dialect.PartThinking
	PartImage    = dialect.PartImage
	PartOther    = dialect.PartOther
)

// What a part has to do with a tool that the provider carries out; see [dialect.Hosted].
const (
	HostedCall   = dialect.HostedCall
	HostedResult = dialect.HostedResult
	HostedCites  = dialect.HostedCites
)

// HostedEnd is [dialect.HostedEnd].
func HostedEnd(parts []Part, i int) int { return dialect.HostedEnd(parts, i) }

// HostedText is [dialect.HostedText].
func HostedText(parts []Part) string { return dialect.HostedText(parts) }

// KeyOf is [dialect.KeyOf].
func KeyOf[S string | []byte](name S) Key { return dialect.KeyOf(name) }

// PathRead is [dialect.PathRead].
func PathRead(tool string, args Raw) string { return dialect.PathRead(tool, args) }

// PathInText is [dialect.PathInText].
func PathInText(s string) string { return dialect.PathInText(s) }

// The functions of package codec that callers need to read and write payloads.

// Raw is one JSON value as it came.
type Raw = codec.Raw

// Marshal is [codec.Marshal].
func Marshal(v any) ([]byte, error) { return codec.Marshal(v) }

// Unmarshal is [codec.Unmarshal].
func Unmarshal(data []byte, v any) error { return codec.Unmarshal(data, v) }

// UnmarshalLenient is [codec.UnmarshalLenient].
func UnmarshalLenient(data []byte, v any) error { return codec.UnmarshalLenient(data, v) }

// UnmarshalStrict is [codec.UnmarshalStrict].
func UnmarshalStrict(data []byte, v any) error { return codec.UnmarshalStrict(data, v) }

// Members is [codec.Members].
func Members(raw Raw) iter.Seq2[string, Raw] { return codec.Members(raw) }

// Text is [codec.Text].
func Text(raw Raw) (s string, ok bool) { return codec.Text(raw) }

// Units is [codec.Units].
func Units(s string) int { return codec.Units(s) }

// DisableNulls returns an object whose groups that are null are {"enabled":false} where hasSwitch
// holds of their path, such as prune.micro; other text stays as it is.
func DisableNulls(object Raw, hasSwitch func(path string) bool) Raw {
	return disableNulls("", object, hasSwitch)
}

func disableNulls(path string, object Raw, hasSwitch func(path string) bool) Raw {
	ms, err := codec.ReadObject(object)
	if err != nil {
		return object
	}
	for i, x := range ms {
		at := strings.TrimPrefix(path+"."+x.Name, ".")
		switch {
		case x.Value.Kind() == '{':
			ms[i].Value = disableNulls(at, x.Value, hasSwitch)
		case x.Value.Kind() == 'n' && hasSwitch(at):
			ms[i].Value = Raw(`{"enabled":false}`)
		}
	}
	return codec.WriteObject(ms)
}
