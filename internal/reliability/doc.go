// Package reliability knows what compactd promises when things fail, and which test
// shows it. Tests print what they counted; the program collect writes it as the table
// of docs/reliability.md.
//
//	reliability.Print(t, "P1", "kills", kills, "acks", acks, "lost", lost)
//
// prints, whatever the figures are,
//
//	reliability P1 test=TestFaultKills kills=210 acks=81233 lost=0
//
// # Guarantees
//
// A figure in the table was printed by the test that stands beside it. A test whose
// line is not there is shown as missing, one that was skipped as skipped, and one
// whose figures are not what is demanded as missed.
//
// # Concurrency
//
// [Print] may be called by tests of several processes at once: a line is written by
// one call to a file that is open for appending.
//
// # On failure
//
// A line that cannot be stored fails the test that prints it.
package reliability
