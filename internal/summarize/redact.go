package summarize

import "compactd/internal/summarize/sanitize"

// secretPlace stands for what cannot be shown without its secrets.
const secretPlace = "[secret]"

// Redact replaces the secrets in a text, see [sanitize.Redact].
func Redact(s string) string { return sanitize.Redact(s) }
