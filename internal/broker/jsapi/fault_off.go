//go:build !faults

package jsapi

// Unfenced reports a defect that is built in only with the tag faults.
func Unfenced() bool { return false }
