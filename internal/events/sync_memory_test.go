package events_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"compactd/internal/events"
)

// A request of many tiny values takes no multiple of its bytes before it is refused.
func TestTinyValuesOfSync(t *testing.T) {
	const size, most = 8 << 20, 64 << 20
	var fields strings.Builder
	for i := 0; fields.Len() < size; i++ {
		fmt.Fprintf(&fields, `,"%x":1`, i)
	}
	for name, body := range map[string]string{
		"messages": `{"session":"s","messages":[` + strings.Repeat("1,", size/2) + `1]}`,
		"fields":   `{"session":"s","messages":[]` + fields.String() + `}`,
		"usage":    `{"session":"s","messages":[],"usage":{"view":"v"` + fields.String() + `}}`,
		"model":    `{"session":"s","messages":[],"model":{"name":"m"` + fields.String() + `}}`,
	} {
		data := []byte(body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := events.Decode[events.SyncRequest](data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; events.CodeOf(err) != events.CodeTooLarge || n > most {
			t.Errorf("%s: %d MiB for a request of %d, %v", name, n>>20, len(data)>>20, err)
		}
	}
}
