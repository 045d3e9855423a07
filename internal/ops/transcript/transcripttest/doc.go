// Package transcripttest reads whole transcripts, for tests.
package transcripttest
