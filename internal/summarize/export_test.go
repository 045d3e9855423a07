package summarize

// What tests need of the inside.
var (
	Plain    = plain
	Clip     = clip
	UserText = func(s string) string { text, _ := userText(s); return text }
	Suffixes = suffixes
)
