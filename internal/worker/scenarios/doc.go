// Package scenarios holds only the tests of whole workers and fleets. A file is named after its
// topic: kills, hand-overs, damage, power loss, erasure, hostile events.
//
// The tests of one package are beside its code. Package compactd/internal/testkit/workertest has the
// helpers of both. Tests named TestFault… and TestSoak… need the tag faults; make test-faults and
// make soak run them.
package scenarios
