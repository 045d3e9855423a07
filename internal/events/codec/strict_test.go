package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A strict reader takes each type, passes over others, and refuses what a provider does.
func TestReadStrict(t *testing.T) {
	type inner struct {
		Text string `json:"text"`
	}
	type shape struct {
		Text  string          `json:"text"`
		Yes   bool            `json:"yes"`
		Kind  Type            `json:"kind"`
		Words Words           `json:"words"`
		List  []Strict[inner] `json:"list"`
		Inner Inner[inner]    `json:"inner"`
	}
	list := func(all ...Strict[inner]) []Strict[inner] { return all }
	for raw, want := range map[string]Strict[shape]{
		`{"text":"a\u00e9","yes":true,"kind":{"x":[2]},"other":{"text":7}}`: {Of: shape{Text: "aé", Yes: true, Kind: '{'}},
		`{"text":"a","text":"b"}`:              {Of: shape{Text: "b"}},
		`{"\u0074ext":"a"}`:                    {Of: shape{Text: "a"}},
		`{"text":null,"yes":null,"list":null}`: {},
		`{"list":[]}`:                          {Of: shape{List: []Strict[inner]{}}},
		` {"kind":-1.5e3} `:                    {Of: shape{Kind: '0'}},
		`{"words":"a"}`:                        {Of: shape{Words: Some}},
		`{"words":" \n"}`:                      {Of: shape{Words: Blank}},
		`{"words":null}`:                       {Of: shape{Words: Null}},
		`{"inner":{"text":"a"}}`:               {Of: shape{Inner: Inner[inner]{'{', inner{"a"}}}},
		`{"inner":null}`:                       {Of: shape{Inner: Inner[inner]{Type: 'n'}}},
		`{"list":[{"text":7},null,{"text":{"x":[1]},"y":[2]},{"text":"a"}],"text":"b"}`: {Of: shape{
			List: list(Strict[inner]{Bad: true}, Strict[inner]{Bad: true}, Strict[inner]{Bad: true}, Strict[inner]{Of: inner{"a"}}), Text: "b",
		}},
		`{"text":"a","inner":[1]}`:       {Bad: true},
		`{"text":7}`:                     {Bad: true},
		`{"yes":"true"}`:                 {Bad: true},
		`{"words":7}`:                    {Bad: true},
		`{"list":{}}`:                    {Bad: true},
		`[]`:                             {Bad: true},
		`null`:                           {Bad: true},
		`{"text":"\ud83d"}`:              {Bad: true},
		"{\"text\":\"\xff\"}":            {Bad: true},
		`{"other":{"x":"\ud83d"}}`:       {Bad: true},
		`{"list":[{"text":"\ud83d"}]}`:   {Bad: true},
		`{"text":"a"`:                    {Bad: true},
		`{"list":[{"text":7},{"text":"a`: {Bad: true},
		`{"text":}`:                      {Bad: true},
		`{"text":"a"} {}`:                {Bad: true},
		``:                               {Bad: true},
	} {
		got := ReadStrict[shape](Raw(raw))
		if got.Bad {
			got.Of = shape{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", raw, d)
		}
	}
}
