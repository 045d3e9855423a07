package tokens

import (
	"cmp"
	"crypto/subtle"
	"time"

	"golang.org/x/time/rate"
)

// Entry is a token that a listener accepts.
type Entry struct {
	Token
	Name string        // in the audit log
	Part string        // of its tenant, for the limiter
	Rate *rate.Limiter // of its requests; nil for an operator's of [Operators]
}

// Set holds the tokens that a listener accepts.
type Set map[Hash]*Entry

// NameOf is the name of a token in the audit log, with the id of worker token list.
func NameOf(h Hash) string { return "token " + h.String()[:12] }

// Find returns the token of a request, or nil. The time of the search depends only on the hash, which no
// client can choose; the comparison takes constant time.
func (s Set) Find(key []byte, secret string, now time.Time) *Entry {
	h := HashOf(secret)
	found := cmp.Or(s[h], noEntry)
	if subtle.ConstantTimeCompare(found.Hash[:], h[:]) == 0 {
		return s.signed(key, secret, now)
	}
	if !found.Valid(now) {
		return nil
	}
	return found
}

// noEntry is compared if no token has the hash. No text is known with the hash 0.
var noEntry = &Entry{}

// signed returns the token of a session that was signed for a valid token of the set, or nil. The two share a
// part and a rate.
func (s Set) signed(key []byte, secret string, now time.Time) *Entry {
	own, of, err := Open(key, secret)
	if err != nil || !own.Valid(now) {
		return nil
	}
	from := s[of]
	if from == nil || !from.Valid(now) || from.Role == RoleSession || !from.MayUse(own.Tenant) {
		return nil
	}
	return &Entry{own, NameOf(own.Hash), from.Part, from.Rate}
}

// Operator is a caller who may use all tenants, and is known by a name alone.
func Operator(name string) *Entry {
	return &Entry{Token: Token{Tenant: AnyTenant, Role: RoleOperator}, Name: name}
}

// Operators finds the one token of a listener for operators. If want is "", each request has it: the listener is for
// programs of its machine.
func Operators(want string) func(secret string) *Entry {
	if want == "" {
		return func(string) *Entry { return Operator("local") }
	}
	t := Operator("operator")
	t.Hash = HashOf(want)
	return func(secret string) *Entry { return Set{t.Hash: t}.Find(nil, secret, time.Now()) }
}
