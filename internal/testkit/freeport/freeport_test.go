package freeport

import (
	"net"
	"testing"
)

// No address is given twice in a row of as many as a block has, and one that is
// listened at is passed over.
func TestAddress(t *testing.T) {
	seen := map[string]bool{}
	var taken net.Listener
	for i := range size - 2 {
		at, err := Address()
		if err != nil || seen[at] {
			t.Fatalf("address %d: %q, %v, seen before: %v", i, at, err, seen[at])
		}
		seen[at] = true
		if i == 0 {
			if taken, err = net.Listen("tcp", at); err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
		}
	}
	for range size {
		if at, err := Address(); err != nil || at == taken.Addr().String() {
			t.Fatalf("address %q, %v, though %v listens", at, err, taken.Addr())
		}
	}
}
