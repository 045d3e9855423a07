package llm

import "testing"

// A link whose host the range does not name is none; one that it names stays.
func TestUnverifiedLinks(t *testing.T) {
	const prompt = "Docs are on https://Docs.Example.com/a, the API on api.example.com:8443. See reddit.com, and http://127.0.0.1:8223/x."
	for s, want := range map[string]string{
		"read https://docs.example.com/b?c=d":         "read https://docs.example.com/b?c=d",
		"ask http://api.example.com/x and 127.0.0.1":  "ask http://api.example.com/x and 127.0.0.1",
		"at http://127.0.0.1:9/":                      "at http://127.0.0.1:9/",
		"see [here](https://evil.example/?k=1) now":   "see [here]([unverified link]) now",
		"<https://evil.example>":                      "<[unverified link]>",
		"https://secret.docs.example.com":             "[unverified link]", // not the host, but one below it
		"https://example.com":                         "[unverified link]", // nor above it
		"https://t.co/x and ftp://ddit.com":           "[unverified link] and [unverified link]",
		"https://docs.example.com@evil.example/":      "[unverified link]",
		"https://docs.example.com.evil.example/":      "[unverified link]",
		"www.evil.example/x, WWW.EVIL.EXAMPLE":        "[unverified link] [unverified link]",
		"ｈｔｔｐ：／／ｅｖｉｌ.example/x":                       "[unverified link]",
		"h\u200bttps://evil.example":                  "[unverified link]",
		"[x](//evil.example/x) [y](javascript:alert)": "[x]([unverified link]) [y]([unverified link])",
		"a//b, // comment, src/main.go, foo:bar":      "a//b, // comment, src/main.go, foo:bar",
	} {
		if got := newSource(prompt).verified(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}
