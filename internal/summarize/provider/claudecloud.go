package provider

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go/bedrock"
	"github.com/anthropics/anthropic-sdk-go/vertex"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/oauth2/google"

	"compactd/internal/summarize/model"
)

var errAWS = errors.New("no credentials from the AWS configuration")

// newClaudeBedrock signs with the key, or with what AWS's own tools would find.
// The SDK prefers AWS_BEARER_TOKEN_BEDROCK to either.
func newClaudeBedrock(c Config, p preset) (completer, error) {
	access := aws.Config{Region: c.Location}
	if c.Key != "" {
		access.BearerAuthTokenProvider = bedrock.NewStaticBearerTokenProvider(string(c.Key))
		return newClaude(c, p, bedrock.WithConfig(access)), nil
	}
	found, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(c.Location))
	if err != nil {
		return nil, errAWS
	}
	access.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		keys, err := found.Credentials.Retrieve(ctx)
		if err != nil {
			return aws.Credentials{}, &model.Error{Kind: model.Auth, Err: errAWS}
		}
		return keys, nil
	})
	return newClaude(c, p, bedrock.WithConfig(access)), nil
}

func newClaudeVertex(c Config, p preset) (completer, error) {
	access := &google.Credentials{ProjectID: c.Project, TokenSource: newGoogleTokens()}
	return newClaude(c, p, vertex.WithCredentials(context.Background(), c.Location, c.Project, access)), nil
}
