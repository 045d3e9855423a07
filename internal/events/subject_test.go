package events

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"a":                       true,
		"A-Z_09":                  true,
		"-":                       true,
		"_":                       true,
		strings.Repeat("x", 64):   true,
		strings.Repeat("x", 65):   false,
		strings.Repeat("x", 352):  false,
		strings.Repeat("x", 5000): false,
		"":                        false,
		".":                       false,
		"a.b":                     false,
		"*":                       false,
		">":                       false,
		"a b":                     false,
		"a\tb":                    false,
		"a\x00b":                  false,
		"größe":                   false,
		"a/b":                     false,
		"\xff":                    false,
	} {
		if got := ValidID(id); got != want {
			t.Errorf("ValidID(%.20q) = %v, want %v", id, got, want)
		}
	}
}

// The vectors that clients in other languages are tested with.
func TestSessionIDs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "clients", "conformance", "session-ids.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		IDs     []struct{ Name, ID string }
		Refused []string
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors.IDs) < 20 || len(vectors.Refused) < 2 {
		t.Fatalf("%v: %d vectors", err, len(vectors.IDs))
	}
	for _, v := range vectors.IDs {
		if id, err := SessionID(v.Name); err != nil || id != v.ID {
			t.Errorf("SessionID(%.40q) = %q, %v, want %q", v.Name, id, err, v.ID)
		}
		if name := SessionName(v.ID); name != v.Name {
			t.Errorf("SessionName(%q) = %.40q, want %.40q", v.ID, name, v.Name)
		}
	}
	for _, name := range append(vectors.Refused, "\xff", "a\xc3") {
		if id, err := SessionID(name); CodeOf(err) != CodeBadID {
			t.Errorf("SessionID(%.20q) = %q, %v, want %s", name, id, err, CodeBadID)
		}
	}
}

// Every name has a valid id of its own, from which the name comes back. An id that no name
// has is shown as it is.
func TestSessionIDIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringN(1, -1, MaxSessionName), rapid.StringMatching(`(b64-)?[A-Za-z0-9_-]{1,200}`)).Draw(t, "name")
		id, err := SessionID(name)
		if err != nil || !ValidSession(id) {
			t.Fatalf("%q: %q, %v", name, id, err)
		}
		if got := SessionName(id); got != name {
			t.Fatalf("%q became %q, and %q", name, id, got)
		}
		if other := SessionName(name); other != name {
			if again, err := SessionID(other); err != nil || again != name {
				t.Fatalf("the id %q has the name %q, whose id is %q", name, other, again)
			}
		}
	})
}

func TestValidEventID(t *testing.T) {
	for id, want := range map[string]bool{
		"0198": true, "größe *.>": true, strings.Repeat("x", 256): true,
		"": false, "a\nb": false, "\x7f": false, strings.Repeat("x", 257): false,
	} {
		if got := ValidEventID(id); got != want {
			t.Errorf("ValidEventID(%.20q) = %v, want %v", id, got, want)
		}
	}
}

func TestInput(t *testing.T) {
	for _, test := range []struct {
		kind Kind
		addr Address
		want string
		code Code
	}{
		{KindTurn, Address{"default", "s-1"}, "session.turn.default.s-1", ""},
		{KindForget, Address{"_", "_"}, "session.forget._._", ""},
		{KindCompacted, Address{"t", "s"}, "", CodeUnknownKind},
		{"turn.x", Address{"t", "s"}, "", CodeUnknownKind},
		{"", Address{"t", "s"}, "", CodeUnknownKind},
		{KindTurn, Address{"", "s"}, "", CodeBadID},
		{KindTurn, Address{"t", "a.b"}, "", CodeBadID},
		{KindTurn, Address{"*", ">"}, "", CodeBadID},
	} {
		got, err := Input(test.kind, test.addr)
		if got != test.want || (err != nil) != (test.code != "") || err != nil && CodeOf(err) != test.code {
			t.Errorf("Input(%q, %v) = %q, %v; want %q, code %q", test.kind, test.addr, got, err, test.want, test.code)
		}
	}
}

func TestAddressValidateNamesBothIDs(t *testing.T) {
	err := Address{"", "a b"}.Validate()
	bad, ok := errors.AsType[*Invalid](err)
	if !ok || len(bad.Problems) != 2 || bad.Problems[0].Field != "tenant" || bad.Problems[1].Field != "session" {
		t.Errorf("got %v, want one problem for each id", err)
	}
}

func TestParseLog(t *testing.T) {
	long := strings.Repeat("s", 5000)
	for subject, want := range map[string]Location{
		"log.0.turn.default.s-1":    {0, KindTurn, Address{"default", "s-1"}},
		"log.63.summary.t.s":        {63, KindSummary, Address{"t", "s"}},
		"log.1.nonsense.t.s":        {1, "nonsense", Address{"t", "s"}},
		"log.1.turn.t.a.b":          {1, KindTurn, Address{"t", "a.b"}},
		"log.1.turn.t." + long:      {1, KindTurn, Address{"t", long}},
		"log.1.turn.a b.\u00e9\x01": {1, KindTurn, Address{"a b", "\u00e9\x01"}},
	} {
		got, err := ParseLog(subject)
		if err != nil {
			t.Errorf("ParseLog(%.40q): %v", subject, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("ParseLog(%.40q): %s", subject, d)
		}
	}
	for _, subject := range []string{"", "log", "log.1.turn.t", "out.1.turn.t.s", "log.x.turn.t.s", "log.-1.turn.t.s", "log..turn.t.s", "log.99999999999999999999.turn.t.s"} {
		if got, err := ParseLog(subject); err == nil {
			t.Errorf("ParseLog(%q) = %v, want an error", subject, got)
		}
	}
}

func TestLocationValidate(t *testing.T) {
	for _, test := range []struct {
		loc   Location
		codes []Code
	}{
		{Location{1, KindTurn, Address{"t", "s"}}, nil},
		{Location{1, "x", Address{"t", "s"}}, []Code{CodeUnknownKind}},
		{Location{1, KindBudget, Address{"t", "s"}}, []Code{CodeUnknownKind}},
		{Location{1, "x", Address{"", "a.b"}}, []Code{CodeUnknownKind, CodeBadID, CodeBadID}},
		{Location{1, KindEnd, Address{"t", strings.Repeat("x", 353)}}, []Code{CodeBadID}},
	} {
		if d := cmp.Diff(test.codes, codes(test.loc.Validate())); d != "" {
			t.Errorf("%v: %s", test.loc, d)
		}
	}
}

// The subjects that a worker and the server agree on.
func TestSubjects(t *testing.T) {
	a := Address{"t", "s"}
	got := []string{
		Outcome(3, KindCompacted, a), Published(KindCompacted, a), Published(KindBudget, Address{"t", "*"}), Marker(3),
		Config("abc"), LogFilter(3), OutcomeFilter(3), InputFilter(KindTurn), LogTransform(8),
	}
	want := []string{
		"out.3.compacted.t.s", "session.compacted.t.s", "session.budget.t.*", "out.3.mark",
		"out.config.abc", "log.3.>", "out.3.>", "session.turn.*.*",
		"log.{{partition(8,2,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// ParseOutcome reads the subjects that Outcome builds; the log's form is the same.
func TestSubjectsRoundTrip(t *testing.T) {
	id := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	session := rapid.StringMatching(`[A-Za-z0-9_-]{1,352}`)
	rapid.Check(t, func(t *rapid.T) {
		want := Location{
			Partition: rapid.IntRange(0, 1000).Draw(t, "partition"),
			Kind:      rapid.SampledFrom(slices.Concat(LogKinds, OutcomeKinds)).Draw(t, "kind"),
			Address:   Address{id.Draw(t, "tenant"), session.Draw(t, "session")},
		}
		subject := Outcome(want.Partition, want.Kind, want.Address)
		got, err := ParseOutcome(subject)
		if err != nil || got != want {
			t.Fatalf("%s: got %v, %v", subject, got, err)
		}
		if got, err = ParseLog("log" + strings.TrimPrefix(subject, "out")); err != nil || got != want {
			t.Fatalf("as log: got %v, %v", got, err)
		}
		if slices.Contains(LogKinds, want.Kind) != (want.Validate() == nil) {
			t.Fatalf("%v: %v", want, want.Validate())
		}
	})
}

// codes lists the codes of an error, nil for none.
func codes(err error) []Code {
	bad, ok := errors.AsType[*Invalid](err)
	if !ok {
		return nil
	}
	var out []Code
	for _, p := range bad.Problems {
		out = append(out, p.Code)
	}
	return out
}

func TestReadTrace(t *testing.T) {
	const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		name   string
		values []string
		id     string
	}{
		{"valid", []string{valid}, "0af7651916cd43dd8448eb211c80319c"},
		{"none", nil, ""},
		{"twice", []string{valid, valid}, ""},
		{"empty", []string{""}, ""},
		{"short", []string{valid[:54]}, ""},
		{"long", []string{valid + "-1"}, ""},
		{"later version", []string{"01" + valid[2:]}, ""},
		{"upper case", []string{"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"}, ""},
		{"zero id", []string{"00-00000000000000000000000000000000-b7ad6b7169203331-01"}, ""},
		{"zero span", []string{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"}, ""},
		{"no hex", []string{"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01"}, ""},
		{"dashes elsewhere", []string{"00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01"}, ""},
		{"more dashes", []string{"00-0af7651916cd43dd8448eb211c8031-c-b7ad6b7169203331-01"[:55]}, ""},
		{"line break", []string{valid[:53] + "\n1"}, ""},
	} {
		if got := ReadTrace(c.values).ID(); got != c.id {
			t.Errorf("%s: %q, want %q", c.name, got, c.id)
		}
	}
}
