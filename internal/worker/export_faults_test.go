//go:build faults

package worker

// Failpoints is for the fault tests.
var (
	Failpoints         = failpoints
	EraseFailpoints    = eraseFailpoints
	SnapshotFailpoints = snapshotFailpoints
)
