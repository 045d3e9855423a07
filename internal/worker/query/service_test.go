package query

import "testing"

type defect struct{}

func (defect) MarshalJSON() ([]byte, error) { panic("a defect") }

// A panic while an answer is written is an error of this answer.
func TestEncodePanics(t *testing.T) {
	data, err := (&Service{}).encode(t.Context(), defect{})
	if err == nil || data != nil {
		t.Errorf("%s, %v", data, err)
	}
}
