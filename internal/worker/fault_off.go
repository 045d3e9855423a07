//go:build !faults

package worker

// ignoreMarker is false: faults are built in only with the tag faults.
func ignoreMarker() bool { return false }
