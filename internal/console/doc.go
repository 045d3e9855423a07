// Package console owns the page that a worker shows to a browser: the files of assets, which
// make console builds from console/.
//
//	if page.Serve(w, r) {
//		return // it was a request for the page
//	}
//
// # Guarantees
//
//   - The files hold no data: the page reads all it shows under /v1, with the token of its user.
//   - A browser runs only what these files hold, and sends requests to their own origin alone.
//
// # Concurrency
//
// A [Page] is safe for concurrent use.
//
// # On failure
//
// A request for anything else is not answered.
package console
