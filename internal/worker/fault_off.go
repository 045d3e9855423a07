//go:build !faults

package worker

// Faults are built in only with the tag faults.

func failpoint(string) {}

func ignoreMarker() bool    { return false }
func checkpointEarly() bool { return false }
func forgetDirty() bool     { return false }
