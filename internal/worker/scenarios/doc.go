// Package scenarios holds only the tests of whole workers and fleets. A file is named after the
// promise that it tests: kills, hand-overs, damage, erasure, audit, bounds of tenants, front doors.
//
// The tests of one package are beside its code, also those that need a worker around it. Package
// compactd/internal/testkit/workertest has the helpers of both. Tests named TestFault… and TestSoak…
// need the tag faults; make test-faults and make soak run them.
package scenarios
