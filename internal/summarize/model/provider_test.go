package model_test

import (
	"testing"

	"compactd/internal/summarize/model"
	"compactd/internal/summarize/summarizetest"
)

// C5: every provider keeps the contract of a model. Where several speak one wire
// format, those are here that send something of their own.
func TestProviders(t *testing.T) {
	for _, p := range []struct {
		provider model.Provider
		path     string
	}{
		{model.OpenAI, "v1"},
		{model.Azure, "openai/v1/"},
		{model.Mistral, "v1/"},
		{model.Anthropic, ""},
		{model.Google, ""},
	} {
		t.Run(string(p.provider), func(t *testing.T) {
			summarizetest.Run(t, func(t testing.TB, c model.Config) model.Model {
				c.Provider, c.Model = p.provider, "some-model"
				c.BaseURL += p.path
				m, err := model.New(c)
				if err != nil {
					t.Fatal(err)
				}
				return m
			})
		})
	}
}
