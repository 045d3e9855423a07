// Package scenarios holds the tests of whole workers and fleets, and no other code. A file is
// named by what it shows: kills, hand-overs, damage, lost power, erasure, hostile events.
//
// The tests of one package are beside its code. Package compactd/internal/testkit/workertest has the
// helpers of both. Tests whose names begin with TestFault and TestSoak need
// the tag faults; make test-faults and make soak run them.
package scenarios
