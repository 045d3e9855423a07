// Package toolcall reads which files a call of a tool reads and changes. Harnesses name their
// tools and arguments as they like: the names that are known are one table.
//
//	kind := toolcall.KindOf("str_replace_based_edit_tool", args) // a read, if its command is view
//	for u := range toolcall.Uses("bash", args) { … }            // every file of a command or patch
//
// It is below package dialect, so that a ledger and a summary know the same tools.
//
// # Guarantees
//
//   - All functions take time linear in the arguments.
//   - A path is text of the call, as it stands there: of a shell command behind a `cd` to an
//     absolute directory, within that directory. A directory of more than 4,096 bytes is
//     unknown. Options, URLs, patterns, variables and here-documents are no paths.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// Nothing fails: a call that is not understood has no files.
package toolcall
