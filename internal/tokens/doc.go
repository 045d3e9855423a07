// Package tokens is who may use the listeners of a worker: the lines of the agents' tokens file, tokens of
// sessions that a worker signs, and the operators' one token.
//
//	all, err := tokens.Read("tokens")                        // by the hash of each
//	secret, err := tokens.Add("tokens", tokens.Token{Tenant: "acme", Role: tokens.RoleAgent})
//	t := tokens.Set{hash: entry}.Find(key, secret, now)     // nil: none that is in force
//	text := tokens.Sign(key, of, address, expires)           // for the model of a session
//
// # Guarantees
//
// The file has the SHA-256 of each token and no token: who reads it can use none. A change replaces
// the file as a whole; readers see the one before or the one after.
//
// # Concurrency
//
// Functions may be called at any time. Of two changes at once one is refused.
//
// # On failure
//
// A file with an error in any line is refused whole, with the numbers of these lines.
package tokens
