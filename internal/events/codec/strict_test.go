package codec

import (
	"errors"
	"testing"
)

// A strict reader takes each type, passes over others, and refuses what a provider does.
func TestReadStrict(t *testing.T) {
	type shape struct {
		text       string
		yes        bool
		elements   int
		kind       Kind
		isArray    bool
		wrong, bad bool
	}
	for raw, want := range map[string]shape{
		`{"text":"a\u00e9","yes":true,"list":[1,{"x":[2]},"c"],"other":{"text":7}}`: {text: "aé", yes: true, elements: 3, isArray: true, kind: '{'},
		`{"text":"a","text":"b"}`:              {text: "b"},
		`{"\u0074ext":"a"}`:                    {text: "a"},
		`{"text":null,"yes":null,"list":null}`: {},
		`{"text":7}`:                           {wrong: true},
		`{"yes":"true"}`:                       {wrong: true},
		`{"list":{}}`:                          {wrong: true},
		`{"list":[]}`:                          {isArray: true},
		` {"other":-1.5e3} `:                   {kind: '0'},
		`[]`:                                   {wrong: true},
		`{"text":"\ud83d"}`:                    {bad: true},
		"{\"text\":\"\xff\"}":                  {bad: true},
		`{"other":{"x":"\ud83d"}}`:             {kind: '{', bad: true},
		`{"text":"a"`:                          {text: "a", bad: true},
		`{"list":[1,2`:                         {elements: 2, isArray: true, bad: true},
		`{"text":}`:                            {bad: true},
		`{"text":"a"} {}`:                      {text: "a", bad: true},
		``:                                     {bad: true},
	} {
		var got shape
		err := ReadStrict(Raw(raw), func(s *Strict) {
			s.Object(func(key []byte) {
				switch string(key) {
				case "text":
					got.text = s.String()
				case "yes":
					got.yes = s.Bool()
				case "list":
					got.isArray = s.Array(func() {
						if s.Skip() != 0 {
							got.elements++
						}
					})
				default:
					got.kind = s.Skip()
				}
			})
			got.wrong = s.Wrong
		})
		if got.bad = err != nil; got.bad {
			got.wrong, want.wrong = false, false
		}
		if got != want {
			t.Errorf("%s: %+v, %v, want %+v", raw, got, err, want)
		}
	}
	if err := ReadStrict(Raw(`1 2`), func(s *Strict) { s.Skip() }); !errors.Is(err, ErrTrailing) {
		t.Errorf("trailing data: %v", err)
	}
}
