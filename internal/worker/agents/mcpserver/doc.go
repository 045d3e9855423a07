// Package mcpserver shows one session to its model over MCP: a model looks up content that a
// compaction removed from its history.
//
//	s := mcpserver.New("0.1.0", address, service, begin)
//	h := mcpserver.Handler(func(r *http.Request) *mcp.Server { return s })
//
// Tools: recall, search_history, what_was_dropped, context_stats, files and compact_now.
// Resources: the summary and its record of facts, and the history as of each generation.
//
// Terms: a place is the turn and the index of a message, as notices and summaries name it.
//
// # Guarantees
//
//   - A server shows only the session that it was made for, and its ancestors: no other can be named.
//   - A tool's result, or a page of it, has at most 24 KiB: a lookup does not fill the
//     window.
//   - Bad arguments and refusals are answered as errors of the tool, with a hint that a model can
//     act on.
//
// # Concurrency
//
// A server is safe for concurrent use. It has no state: any worker answers any request.
//
// # On failure
//
// An error of the service is the answer to the call, with its code. An unexpected one names no
// detail.
package mcpserver
