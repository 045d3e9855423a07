package provider

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// gemini speaks Google's generateContent, of AI Studio and of Vertex AI.
type gemini struct {
	models *genai.Models
	model  string
}

func newGoogle(c Config, p preset) (completer, error) {
	return newGemini(c, &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: string(c.Key), HTTPClient: newHTTPClient(c, p),
	})
}

func newGeminiVertex(c Config, p preset) (completer, error) {
	return newGemini(c, &genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: c.Project, Location: c.Location,
		HTTPClient: withGoogleToken(newHTTPClient(c, p)),
	})
}

// newGemini takes a config with everything set that the SDK would read from the
// environment otherwise. The SDK's errors hold the config, key included: none is
// passed on.
func newGemini(c Config, config *genai.ClientConfig) (completer, error) {
	config.HTTPOptions.BaseURL = c.BaseURL
	sdk, err := genai.NewClient(context.Background(), config)
	if err != nil {
		return nil, errors.New("the SDK refuses the configuration")
	}
	return &gemini{models: sdk.Models, model: c.Model}, nil
}

func (g *gemini) complete(ctx context.Context, r model.Request) (model.Reply, error) {
	config := &genai.GenerateContentConfig{MaxOutputTokens: int32(min(r.MaxOutputTokens, math.MaxInt32))}
	if r.System != "" {
		config.SystemInstruction = genai.NewContentFromText(r.System, "")
	}
	res, err := g.models.GenerateContent(ctx, g.model, genai.Text(r.User), config)
	if err != nil {
		return model.Reply{}, err
	}
	if f := res.PromptFeedback; f != nil && f.BlockReason != "" && len(res.Candidates) == 0 {
		return model.Reply{}, &model.Error{Kind: model.Refused, Status: http.StatusOK}
	}
	if len(res.Candidates) == 0 || res.Candidates[0] == nil {
		return model.Reply{}, &model.Error{Kind: model.BadAnswer, Err: errForeign}
	}
	reply := model.Reply{Model: res.ModelVersion, Finish: geminiFinish(res.Candidates[0].FinishReason)}
	if u := res.UsageMetadata; u != nil { // thoughts are billed as output and counted apart
		reply.Usage = events.SummaryUsage{
			Input:  int64(u.PromptTokenCount),
			Output: int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
		}
	}
	readGemini(&reply, res.Candidates[0].Content)
	return reply, nil
}

// readGemini takes the text of an answer, without the model's thoughts.
func readGemini(r *model.Reply, c *genai.Content) {
	if c == nil {
		return
	}
	var text strings.Builder
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.FunctionCall != nil:
			r.Finish = model.FinishTool
		default:
			text.WriteString(p.Text)
		}
	}
	r.Text = text.String()
}

func geminiFinish(f genai.FinishReason) model.Finish {
	switch f {
	case genai.FinishReasonStop:
		return model.FinishStop
	case genai.FinishReasonMaxTokens:
		return model.FinishLength
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		return model.FinishTool
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist,
		genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonLanguage:
		return model.FinishRefusal
	default:
		return model.FinishOther
	}
}
