package events

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// go test ./internal/events -run TestIdentity -write fills in canonical forms and digests
// of vectors that have none.
var write = flag.Bool("write", false, "fill in the vectors of identities that are new")

// vector is a case of the identity of messages, for clients in any language. The messages
// are a JSON text, which may have what no JSON value has.
type vector struct {
	Name      string `json:"name"`
	Format    Format `json:"format"`
	JSON      string `json:"json"`
	Canonical string `json:"canonical"`
	Digest    string `json:"digest"`
}

// Messages have the identity that the vectors of the conformance suite state.
func TestIdentity(t *testing.T) {
	path := filepath.Join("..", "..", "clients", "conformance", "c1.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(err)
	}
	for i := range vectors {
		v := &vectors[i]
		var d Decoder
		turn, err := d.inSteps([]byte(`{"format":"`+string(v.Format)+`","messages":`+v.JSON+`}`), "")
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		canonical, digest := string(d.scan.Canonical()), hex.EncodeToString(turn.Digest[:])
		if *write && v.Digest == "" {
			v.Canonical, v.Digest = canonical, digest
		}
		if v.Canonical != canonical || v.Digest != digest {
			t.Errorf("%s: %s is %s, want %s of %s", v.Name, digest, canonical, v.Digest, v.Canonical)
		}
	}
	if *write {
		data, err := json.MarshalIndent(vectors, "", " ")
		if err == nil {
			err = os.WriteFile(path, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
