package sanitize

import "context"

// Inner parts that tests need.

// MaxWork is how often a byte of a text is looked at, at most; docs of the package have it.
const MaxWork = 400

// PathSegment is what a path consists of.
func PathSegment(s string) bool { return pathSegment(s) }

// Words are all words by which a text is looked through.
func Words() []string { return theMachine().words }

// Samples are texts that every rule looks at for long: its shortest match, and that
// without its end.
func Samples() []string {
	var out []string
	for _, r := range theMachine().rules {
		for _, c := range r.chains {
			out = append(out, c.sample())
		}
	}
	return out
}

func (c chain) sample() string {
	var out []byte
	for i := range c {
		if c[i].kind != linkRun {
			continue
		}
		for b := range 0x80 {
			if ch := byte('~' - b); c[i].class.has(ch) && ch > ' ' {
				for range c[i].min {
					out = append(out, ch)
				}
				break
			}
		}
	}
	return string(out)
}

// Once is one look through a text.
func Once(s string) (n, work int) {
	r := Redactor{Work: int(^uint(0) >> 1)}
	found, err := r.secrets(context.Background(), s)
	if err != nil {
		panic(err)
	}
	return len(found), int(^uint(0)>>1) - r.Work
}
