//go:build !faults

package commit

// unfenced is a defect that is built in only with the tag faults.
func unfenced() bool { return false }
