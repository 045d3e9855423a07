// Package sanitize finds secrets in texts, and says what a text looks like to a
// reader.
//
//	clean := sanitize.Redact(text)
//	t := sanitize.Normalize(text)      // NFKC, invisible characters out
//	from, to := t.Original(3, 7)       // bytes of text that t.S[3:7] comes from
package sanitize
