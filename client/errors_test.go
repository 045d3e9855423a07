package client

import "testing"

// A refusal reads as sentences, whether or not its message ends as one.
func TestErrorReads(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Code: "nothing_to_do", Message: "Nothing is smaller.", Hint: "Wait."}, "nothing_to_do: Nothing is smaller. Wait."},
		{Error{Code: "bad_id", Message: "session is too long", Hint: "Use a short one."}, "bad_id: session is too long. Use a short one."},
		{Error{Code: "bad_message", Turn: 3, Message: "no role"}, "turn 3 was refused: bad_message: no role"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
