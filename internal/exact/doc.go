// Package exact counts tokens with the tables of OpenAI's tokenizers. The tables
// are 9 MB of a binary: only the worker and tools link it.
//
//	by, err := exact.New("o200k")
//	config, err = config.WithCounter(by)
//
// # Guarantees
//
// A count is that of tiktoken, for a text of ordinary words. A run of more than
// 1,024 bytes without white space, or of white space alone, is counted in pieces
// of that size: the time a tokenizer takes grows with the square of a run, and a
// history may be hostile. The count of such a run may be up to one token higher
// for each piece.
//
// It is exact for OpenAI's models. For other providers the estimator multiplies it
// as it does its own base, and a session's usage calibrates both.
//
// # Concurrency
//
// A Counter may be used by any number of goroutines.
//
// # On failure
//
// New refuses a name it does not know. Counting does not fail.
package exact
