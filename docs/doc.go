// Package docs is the documentation. Nothing imports it; its tests hold the pages to
// what the program does:
//
//	go test ./docs                          # all pages
//	go test ./docs -run 'Commands/tutorial' # the commands of one
//
// # Guarantees
//
//   - Every command in a block marked sh is run, in the order of its page, in a directory
//     of its own, beside a worker where the page starts one. A command that needs
//     minutes, or a program that a machine may lack, has a reason in commands_test.go.
//   - A block marked output is what the block above it printed, figures aside.
//   - Code is that of a file that is compiled and tested; YAML is a policy, JSON is JSON.
//   - Links and anchors lead somewhere. Flags, commands, variables, metrics, make
//     targets, alerts and paths that a page names are there.
//   - A sentence has at most 40 words, a line outside of code at most 120 columns.
package docs
