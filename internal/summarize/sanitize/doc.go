// Package sanitize finds secrets in texts, and states what a text looks like to a
// reader.
//
//	clean := sanitize.Redact(text)
//	r := sanitize.Redactor{Work: budget} // for the texts of one job
//	clean, err := r.Redact(ctx, text)
//	known := r.Known()                   // replaces what was found where it stands again
//	t := sanitize.Normalize(text)        // NFKC, invisible characters out
//	from, to := t.Original(3, 7)         // bytes of text that t.S[3:7] comes from
//
// A text is normalized, and looked through once for all words that a secret has or
// stands near: prefixes of tokens, names of passwords and keys, marks of headers,
// URLs, private keys and commands. At each word the rules that have it look a bounded
// way around it. The rules are tables in rules/: those of gitleaks, which tools/gitleaks
// writes, and our own. A text that has the shape of a secret by itself counts where a word
// for one stands in its sentence, and digests, ids and words with a number, or joined by signs,
// where a clause calls them one. Tokens that are broken into lines, and what is written
// with escapes or in an encoding, are looked through as well.
//
// # Guarantees
//
//   - The time is linear in the text, whatever it is: no byte is looked at more than
//     400 times in one pass, and there are 4 passes at most. Texts in texts are read
//     to a depth of 3.
//   - Redact removes the bytes of the original that a secret comes from.
//   - A redacted text has no more UTF-16 units, and redacting it again changes nothing.
//   - A Redactor remembers 512 secrets of 128 bytes at most.
//   - It matches forms and names, not meanings.
//
// # Concurrency
//
// Functions are safe for concurrent use. A Redactor is used by one goroutine.
//
// # On failure
//
// A Redactor ends with the error of the context, which it looks at every 64 KB, or
// with [ErrBudget].
package sanitize

//go:generate go -C ../../../tools/gitleaks run . ../../internal/summarize/sanitize/rules/gitleaks.txt
