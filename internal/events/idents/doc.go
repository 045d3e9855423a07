// Package idents finds identifiers in texts: words with what a sentence does not have, such as paths, names in code,
// numbers of versions and hashes.
//
//	for name := range idents.In(text) { … }
//
// # Guarantees
//
// The same text gives the same identifiers, in one pass and without a copy.
package idents
