// Command generate writes the example sessions: scripted coding agents that work
// on this repository as it was at one commit.
//
//	go run ./examples/sessions/generate -out examples/sessions
//
// Each agent is a function that speaks through an [agent]:
//
//	func fixTypo(a *agent) {
//		a.user("Please fix the typo in the README.")
//		a.say("Let me look.", read("README.md"), bash("Run the tests", "go test ./..."))
//		a.say("It is on line 3.", edit("README.md", "a an", "an"))
//		a.say("Done: one word changed.")
//	}
//
// What users and agents say is written by hand; what tools answer is not. Every
// call is carried out in a copy of the repository, in a temporary folder, so a
// file that was edited reads as edited, and a test that fails has failed.
//
// # Guarantees
//
//   - Two runs give the same bytes, on one machine with one version of Go.
//     Durations, temporary paths and the like are replaced by constants.
//   - A call that fails where the script does not expect it ends the run, and so
//     does one that succeeds where it should fail.
//   - A session holds no name of the machine that made it: its folder reads /repo.
//
// # On failure
//
// The commit must be in the repository's history, with its parents: in a shallow
// clone the error says how to fetch them. Nothing is written unless all of a
// session's calls went as scripted.
package main
