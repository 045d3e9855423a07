// Package named shows and takes sessions by the names that agents gave them.
//
//	type statsCmd struct {
//		Session named.Session `required:""` // "chat 42@x", or its id
//	}
//	fmt.Println(named.Show(address)) // acme.chat 42@x
//
// # Guarantees
//
// A name and its id mean one session. A shown name has no control characters: agents choose it.
//
// # Concurrency
//
// Values.
//
// # On failure
//
// A text that is no name is refused, which is wrong usage.
package named
