package summarize

// What tests need of the inside.
var (
	Plain    = plain
	Clip     = clip
	UserText = func(s string) string { text, _ := userText(seen(s)); return text } // as it is read
	Suffixes = suffixes
)
