package sanitize_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/summarize/sanitize"
)

// stopped is a context that ends after it was looked at n times.
type stopped struct {
	context.Context
	left int
}

func (s *stopped) Err() error {
	if s.left--; s.left < 0 {
		return context.Canceled
	}
	return nil
}

// Redaction stops within a text: when its context ends, and when its work is used up.
func TestRedactStops(t *testing.T) {
	text := strings.Repeat("password=", 100_000)
	ctx := &stopped{t.Context(), 3}
	r := sanitize.Redactor{Work: 1 << 40}
	if _, err := r.Redact(ctx, text); !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended: %v", err)
	}
	if used := 1<<40 - r.Work; used > len(text)*sanitize.MaxWork/2 {
		t.Errorf("%d bytes looked at after the context had ended", used)
	}
	r = sanitize.Redactor{Work: len(text)}
	if _, err := r.Redact(t.Context(), text); !errors.Is(err, sanitize.ErrBudget) {
		t.Errorf("the work was used up: %v", err)
	}
}

// A secret that goes on in the next block is taken out of both.
func TestJoint(t *testing.T) {
	token := "ghp_" + strings.Repeat("aB3dE5gH7", 4)
	for _, c := range []struct{ a, b, first, second string }{
		{"use " + token[:15], token[15:] + " now", "use [secret]", "[secret] now"},
		{"DB_PASSWORD=", "tr0ub4dor&3\nnext", "DB_PASSWORD=", "[secret]\nnext"},
		{"plain", " words", "plain", " words"},
	} {
		r := sanitize.Redactor{Work: 1 << 30}
		first, second, err := r.Joint(t.Context(), c.a, c.b)
		if err != nil || first != c.first || second != c.second {
			t.Errorf("%q and %q became %q and %q (%v)", c.a, c.b, first, second, err)
		}
	}
}

// A segment of a path is what the expression matches, which would take its time again at
// each of many names.
func TestPathSegment(t *testing.T) {
	expr := regexp.MustCompile(`^[.@~]{0,2}(?:[A-Za-z]+[_.-])*[A-Za-z]*\d{0,4}(?:\.[A-Za-z]{1,5}\d?)?$`)
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{".", "@", "~", "a", "Go", "mainer", "_", "-", "1", "234", "é", " "}), 0, 9).Draw(t, "parts"), "")
		if got, want := sanitize.PathSegment(s), expr.MatchString(s); got != want {
			t.Fatalf("%q: %t, want %t", s, got, want)
		}
	})
}

// A secret counts whatever blanks, quotes, signs and escapes stand around it.
func TestRedactAround(t *testing.T) {
	for _, c := range []struct{ secret, format string }{
		{"hunter2x", "echo   # | sudo -S ls"},
		{"hunter2x", "echo\t# | sudo -S ls"},
		{"hunter2x", `echo "$USER:#" | chpasswd`},
		{"yhoz:kxngqg", `printf '%s' "#" | docker login --password-stdin`},
		{"abcd:kxng1q", `echo "bob:#" | chpasswd`},
		{"a;lb0ow", "bash -c 'echo # | sudo -S ls'"},
		{`ub7nt\ch5`, `line\necho # | sudo -S ls`},
		{"-xyf1ilu01", "echo # | sudo -S ls"},
		{"correct horse", "echo # | passwd --stdin bob"},
		{"q9/Lxz0aB+k=", `the password: {"command":"echo # | sudo -S ls"}`},
		{"correct horse", "COPY t (id, password) FROM stdin;\n1\t#\n\\.\n"},
		{"aLW(5Axe)2", "COPY t (password) FROM stdin;\n#\n\\.\n"},
		{"_-u7FQYb", "COPY t (id, token) FROM stdin;\n1\t#\n\\.\n"},
		{"correct-horse-ab", "https://h/p?q=-passin+pass%3A#"},
		{"!j09kgze31", "tool /user:bob      #"},
		{"!j09kgze31", "tool \\\n  /user:bob \\\n  #"},
		{"correct-horse-ab", "otpauth://totp/a b:bob?secret=#"},
		{"gi/royk41", `{"args":"\"-passin\", \"pass:#\""}`},
		{"correct-horse-ab", "-passin pass: #"},
		{"correct-horse-ab", "passphrase: pass:#"},
		{"p@ssto2i4", "jdbc:oracle:thin:bob/#@h:1521:x"},
		{"größetyj1", `IDENTIFIED WITH shа256_pаssword BY "#"`},
		{"B4B1B1E8CFAAEAFCC4996BBA", "https://h/p?q=app%3A#%40tcp%28db%29%2Fx"},
	} {
		text := strings.ReplaceAll(c.format, "#", c.secret)
		if got := sanitize.Redact(text); strings.Contains(got, c.secret[:4]) || strings.Contains(got, c.secret[len(c.secret)-4:]) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if s := `echo "Starting it" && make | sudo -S x`; sanitize.Redact(s) != s {
		t.Errorf("%q became %q", s, sanitize.Redact(s))
	}
}
