package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"compactd/internal/summarize/model"
)

// Versions of the messages API in the body of a request to a cloud:
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html
// and https://docs.anthropic.com/en/api/claude-on-vertex-ai, read 2026-11-22.
const (
	bedrockVersion = "bedrock-2023-05-31"
	vertexVersion  = "vertex-2023-10-16"
)

var errAWS = errors.New("no credentials from the AWS configuration")

// newClaudeBedrock calls InvokeModel. It sends the key, or signs with the credentials
// that AWS's own tools would find:
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html,
// read 2026-11-22.
func newClaudeBedrock(c Config, p preset) (completer, error) {
	// An ARN has slashes, which belong to the name.
	e := newEndpoint(c, p, "model/"+url.QueryEscape(c.Model)+"/invoke")
	if c.Key != "" {
		e.header.Set("Authorization", "Bearer "+string(c.Key))
	} else {
		found, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(c.Location))
		if err != nil {
			return nil, errAWS
		}
		e.authorize = signAWS(found.Credentials, c.Location)
	}
	return &claude{endpoint: e, version: bedrockVersion}, nil
}

// signAWS signs a request to Bedrock by Signature Version 4.
func signAWS(keys aws.CredentialsProvider, region string) func(*http.Request, []byte) error {
	signer := v4.NewSigner()
	return func(req *http.Request, body []byte) error {
		k, err := keys.Retrieve(req.Context())
		if err != nil {
			return &model.Error{Kind: model.Auth, Err: errAWS}
		}
		sum := sha256.Sum256(body)
		if err := signer.SignHTTP(req.Context(), k, req, hex.EncodeToString(sum[:]), "bedrock", region, time.Now()); err != nil {
			return &model.Error{Kind: model.Auth, Err: errAWS}
		}
		return nil
	}
}

// newClaudeVertex calls rawPredict of Anthropic's models.
func newClaudeVertex(c Config, p preset) (completer, error) {
	e := newEndpoint(c, p, "v1/projects/"+c.Project+"/locations/"+c.Location+"/publishers/anthropic/models/"+c.Model+":rawPredict")
	e.authorize = newGoogleTokens().authorize
	return &claude{endpoint: e, version: vertexVersion}, nil
}
