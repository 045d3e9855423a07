package overflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
)

// D1, D2, D3, D5: what providers really answered, each with the place where
// a caller met it, and what we make of it. Ids of requests and organizations are
// taken out.
//
//	detect source=<url> [status=<HTTP status>]
//	<the error: a JSON value, or text>
func TestCorpus(t *testing.T) {
	for file, least := range map[string]int{"overflows.txt": 130, "others.txt": 90} {
		cases := 0
		datadriven.RunTest(t, "testdata/"+file, func(t *testing.T, d *datadriven.TestData) string {
			var source string
			var status int64
			d.ScanArgs(t, "source", &source)
			if d.HasArg("status") {
				d.ScanArgs(t, "status", &status)
			}
			if source == "" {
				t.Fatalf("%s: an error without a source", d.Pos)
			}
			cases++
			f := Detect(rawOf(d.Input), status)
			if want := file == "overflows.txt"; f.Overflow() != want {
				t.Errorf("%s: %s: overflow is %t", d.Pos, f.Class, f.Overflow())
			}
			sameInOtherForms(t, d.Pos, d.Input, status, f)
			return describe(f)
		})
		if cases < least {
			t.Errorf("%s has %d cases, want %d", file, cases, least)
		}
	}
}

// rawOf is the JSON value that an agent sends: the body, or a text.
func rawOf(text string) codec.Raw {
	if raw := codec.Raw(text); raw.IsValid() {
		return raw
	}
	return stringOf(text)
}

func stringOf(text string) codec.Raw {
	raw, err := codec.Marshal(text)
	if err != nil {
		panic(err) // a string can always be written
	}
	return raw
}

// D1: an error is the same as a body in a string, within the objects of SDKs, as
// a cause, and after the prefix that a client library puts before it.
func sameInOtherForms(t *testing.T, pos, text string, status int64, want Failure) {
	t.Helper()
	s, raw := string(stringOf(text)), string(rawOf(text))
	forms := []string{
		s,
		`{"message":` + s + `}`,
		`{"error":` + raw + `}`,
		`{"error":{"message":` + s + `}}`,
		`{"message":"generation failed","cause":{"message":` + s + `}}`,
		`{"name":"AI_APICallError","message":"failed","responseBody":` + s + `,"requestBodyValues":{"messages":["429 rate limit, prompt is too long: 9 tokens > 8 maximum"]}}`,
		`{"lastError":{"data":{"error":` + raw + `}}}`,
		string(stringOf("litellm.BadRequestError: SomeException - " + text)),
	}
	rare := []string{
		`{"Error":{"Code":"SomeException","Message":` + s + `},"ResponseMetadata":{"RequestId":"0","HTTPHeaders":{}}}`,
		`{"type":"response.failed","sequence_number":3,"response":{"id":"resp_0","error":{"message":` + s + `}}}`,
		`{"code":-32603,"message":"failed","data":{"details":` + s + `}}`,
		`{"error":{"message":"Provider returned error","metadata":{"raw":` + s + `,"provider_name":"P"}}}`,
		`{"fault":{"faultstring":` + s + `}}`,
		`{"detail":[{"loc":["body"],"msg":` + s + `}]}`,
		`{"message":"Request failed","response":{"data":{"error":` + raw + `}},"config":{"data":"prompt is too long: 9 tokens > 8 maximum"}}`,
		`{"errors":[{"message":` + s + `}],"success":false,"result":null}`,
		`{"base_resp":{"status_msg":` + s + `}}`,
		string(stringOf(`event: error` + "\n" + `data: {"error":` + raw + `}`)),
	}
	for i := range 2 { // of these two each, since there are many cases
		forms = append(forms, rare[(len(text)+i)%len(rare)])
	}
	for _, form := range forms {
		if d := cmp.Diff(want, Detect(codec.Raw(form), status)); d != "" {
			t.Errorf("%s: as %s: %s", pos, form, d)
		}
	}
}

func describe(f Failure) string {
	var b strings.Builder
	b.WriteString(string(f.Class))
	if f.Provider != "" {
		fmt.Fprintf(&b, " from %s", f.Provider)
	}
	for _, n := range []struct {
		name string
		n    int64
	}{{"actual", int64(f.Actual)}, {"limit", int64(f.Limit)}, {"output", int64(f.Output)}} {
		if n.n != 0 {
			fmt.Fprintf(&b, " %s=%d", n.name, n.n)
		}
	}
	return b.String() + "\n"
}
