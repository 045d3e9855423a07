// Package failpoint ends the process at named places, for the fault tests. Without the
// build tag faults every func does nothing, and the compiler removes the calls.
//
// COMPACTD_FAILPOINT=<name>[:n] kills the process with SIGKILL at the n-th pass of a
// failpoint; COMPACTD_FAULT=<name> injects a defect that the tests must detect.
package failpoint
