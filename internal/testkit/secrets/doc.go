// Package secrets has texts with secrets in them, for tests that look for what is left of them.
package secrets
