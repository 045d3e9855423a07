// Package figures prints what a test of a promise counted. The program tools/reliability
// reads the lines and writes docs/reliability.txt.
//
//	figures.Print(t, "P1", "kills", kills, "acks", acks, "lost", lost)
//
// prints, whatever the figures are,
//
//	reliability P1 test=TestFaultKills kills=210 acks=81233 lost=0
//
// # Guarantees
//
// A line has the row of the promise, the test and pairs of a key and a value, whatever
// the figures are.
//
// # Concurrency
//
// [Print] may be called by tests of several processes at once: a line is written by
// one call to a file that is open for appending.
//
// # On failure
//
// A line that cannot be stored fails the test that prints it.
package figures
