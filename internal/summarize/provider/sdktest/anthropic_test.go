package sdktest

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/bedrock"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/vertex"
	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// anthropics calls through anthropic-sdk-go; so do the two below, by way of its clouds.
func anthropics(c provider.Config, _ subject) (asker, error) {
	return messages(c, option.WithAPIKey(string(c.Key))), nil
}

func anthropicsVertex(c provider.Config, _ subject) (asker, error) {
	tokens := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: string(c.Key)})
	return messages(c, vertex.WithCredentials(context.Background(), c.Location, c.Project, &google.Credentials{TokenSource: tokens})), nil
}

func anthropicsBedrock(c provider.Config, s subject) (asker, error) {
	access := aws.Config{Region: c.Location}
	if s.keyless {
		access.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return awsKeys(), nil })
	} else {
		access.BearerAuthTokenProvider = bedrock.NewStaticBearerTokenProvider(string(c.Key))
	}
	return messages(c, bedrock.WithConfig(access)), nil
}

// awsKeys are those of the environment.
func awsKeys() aws.Credentials {
	return aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
}

func messages(c provider.Config, access option.RequestOption) asker {
	service := anthropic.NewMessageService(
		option.WithMaxRetries(0), option.WithoutOpenTelemetry(), option.WithRequestTimeout(time.Minute),
		access, option.WithBaseURL(c.BaseURL),
	)
	return func(ctx context.Context, r model.Request) (model.Reply, error) {
		params := anthropic.MessageNewParams{
			Model: c.Model, MaxTokens: r.MaxOutputTokens,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.User))},
		}
		if r.System != "" {
			params.System = []anthropic.TextBlockParam{{Text: r.System}}
		}
		res, err := service.New(ctx, params)
		if e, ok := errors.AsType[*anthropic.Error](err); ok {
			return model.Reply{}, &refused{e.StatusCode, string(e.Type())}
		}
		if err != nil {
			return model.Reply{}, err
		}
		return ofMessage(res), nil
	}
}

func ofMessage(res *anthropic.Message) model.Reply {
	u := res.Usage
	r := model.Reply{
		Model: res.Model, Finish: model.FinishOther,
		Usage: events.SummaryUsage{Input: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, Output: u.OutputTokens},
	}
	switch res.StopReason {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		r.Finish = model.FinishStop
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		r.Finish = model.FinishLength
	case anthropic.StopReasonToolUse:
		r.Finish = model.FinishTool
	case anthropic.StopReasonRefusal:
		r.Finish = model.FinishRefusal
	}
	var text strings.Builder
	for _, b := range res.Content {
		switch b.AsAny().(type) {
		case anthropic.TextBlock:
			text.WriteString(b.Text)
		case anthropic.ToolUseBlock, anthropic.ServerToolUseBlock:
			r.Finish = model.FinishTool
		}
	}
	r.Text = text.String()
	return r
}
