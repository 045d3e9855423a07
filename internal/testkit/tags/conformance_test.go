package tags_test

import (
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/testkit/reference"
	"compactd/internal/testkit/tags"
)

// Our answers, compared with what the reference system answered (docs/comparison.md).
func TestConformance(t *testing.T) { suite.Run(t) }

var suite = reference.Suite{
	Answers: map[string]func(*reference.Case) any{
		"getEffectiveHistory":    answerEffective,
		"tagForCondensation":     answerHide(tags.Condensed),
		"tagForTruncation":       answerHide(tags.Truncated),
		"removeCondensationTags": answerShow(tags.Condensed),
		"removeTruncationTags":   answerShow(tags.Truncated),
	},
}

// tagInput is what the functions on tags take.
type tagInput struct {
	Messages           []codec.Raw
	FromIndex, ToIndex int
	ID                 string
}

func answerEffective(c *reference.Case) any {
	var in tagInput
	c.Into(&in)
	return reference.Fields{"messages": reference.AsJSON(tags.Effective(in.Messages))}
}

func answerHide(tag tags.Tag) func(*reference.Case) any {
	return func(c *reference.Case) any {
		var in tagInput
		c.Into(&in)
		return reference.Fields{"messages": reference.AsJSON(tag.Hide(in.Messages, in.FromIndex, in.ToIndex, in.ID))}
	}
}

func answerShow(tag tags.Tag) func(*reference.Case) any {
	return func(c *reference.Case) any {
		var in tagInput
		c.Into(&in)
		return reference.Fields{"messages": reference.AsJSON(tag.Show(in.Messages, in.ID))}
	}
}
