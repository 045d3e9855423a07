package summarize

// What tests need of the inside.
var (
	Plain    = plain
	Clip     = clip
	Neutral  = neutral
	UserText = func(s string) string { text, _ := userText(seen(s)); return text } // as it is read
	Suffixes = suffixes
	Inert    = inert

	VerifiedLinks = func(prompt, s string) string { return newSource(prompt).verified(s) }
)
