package sdktest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/oauth2"
	"google.golang.org/genai"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// gemini calls through genai, of AI Studio or of Vertex AI.
func gemini(c provider.Config, _ subject) (asker, error) {
	config := &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: string(c.Key), HTTPClient: &http.Client{}}
	if c.Provider == provider.Vertex {
		tokens := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: string(c.Key)})
		config = &genai.ClientConfig{
			Backend: genai.BackendVertexAI, Project: c.Project, Location: c.Location, HTTPClient: oauth2.NewClient(context.Background(), tokens),
		}
	}
	config.HTTPOptions.BaseURL = c.BaseURL
	sdk, err := genai.NewClient(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r model.Request) (model.Reply, error) {
		config := &genai.GenerateContentConfig{MaxOutputTokens: int32(r.MaxOutputTokens)}
		if r.System != "" {
			config.SystemInstruction = genai.NewContentFromText(r.System, "")
		}
		res, err := sdk.Models.GenerateContent(ctx, c.Model, genai.Text(r.User), config)
		if e, ok := errors.AsType[genai.APIError](err); ok {
			return model.Reply{}, &refused{e.Code, e.Status}
		}
		if err != nil {
			return model.Reply{}, err
		}
		return ofContent(res)
	}, nil
}

func ofContent(res *genai.GenerateContentResponse) (model.Reply, error) {
	if len(res.Candidates) == 0 {
		if res.PromptFeedback != nil && res.PromptFeedback.BlockReason != "" {
			return model.Reply{}, &refused{status: http.StatusOK}
		}
		return model.Reply{}, errors.New("no candidates")
	}
	r := model.Reply{Model: res.ModelVersion, Finish: model.FinishOther}
	if u := res.UsageMetadata; u != nil {
		r.Usage = events.SummaryUsage{Input: int64(u.PromptTokenCount), Output: int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount)}
	}
	switch res.Candidates[0].FinishReason {
	case genai.FinishReasonStop:
		r.Finish = model.FinishStop
	case genai.FinishReasonMaxTokens:
		r.Finish = model.FinishLength
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		r.Finish = model.FinishTool
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist,
		genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonLanguage:
		r.Finish = model.FinishRefusal
	}
	if len(res.FunctionCalls()) > 0 {
		r.Finish = model.FinishTool
	}
	if res.Candidates[0].Content != nil {
		var text strings.Builder
		for _, p := range res.Candidates[0].Content.Parts {
			if !p.Thought {
				text.WriteString(p.Text)
			}
		}
		r.Text = text.String()
	}
	return r, nil
}
