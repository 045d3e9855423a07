package events

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"compactd/internal/events/codec"
)

// The chain of a session is that of the vectors, which clients are tested with.
func TestChainVectors(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "clients", "conformance", "chain.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name   string
		Format Format
		Turns  [][]json.RawMessage
		Chain  []string
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(err)
	}
	for _, v := range vectors {
		var whole Digest
		for i, turn := range v.Turns {
			raws := make([]codec.Raw, len(turn))
			for j := range turn {
				raws[j] = codec.Raw(turn[j])
			}
			whole = whole.With(v.Format.DigestOf(raws), len(raws))
			if whole.String() != v.Chain[i] {
				t.Errorf("%s: turn %d: %s, want %s", v.Name, i+1, whole, v.Chain[i])
			}
		}
	}
}
