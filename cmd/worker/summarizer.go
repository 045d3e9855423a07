package main

import (
	"strings"

	"github.com/rs/zerolog"

	"compactd/internal/summarize"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// summarizer has summaries written by the first of models that can, else by the
// embedded summarizer.
func summarizer(models []model.Model, log zerolog.Logger) summarize.Summarizer {
	return summarize.NewNarrator(models, func(a summarize.Attempt) {
		level := zerolog.InfoLevel
		if a.Err != nil {
			level = zerolog.WarnLevel
		}
		log.WithLevel(level).Err(a.Err).Str("model", a.Model).
			Int64("input_tokens", a.Usage.Input).Int64("output_tokens", a.Usage.Output).Msg("model asked")
	})
}

// modelNames is the order in which a summary is tried.
func modelNames(models []model.Model) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name())
	}
	return strings.Join(append(names, provider.Embedded), ",")
}
