package model

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"compactd/internal/events"
)

// gemini speaks Google's generateContent, of AI Studio and of Vertex AI.
type gemini struct {
	models *genai.Models
	model  string
}

// newGoogle sets everything that the SDK would read from the environment if it
// were empty. The SDK's errors hold the whole config, key included: none is passed on.
func newGoogle(c Config, p preset) (completer, error) {
	config := &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: string(c.Key),
		HTTPClient: newHTTPClient(c, p), HTTPOptions: genai.HTTPOptions{BaseURL: c.BaseURL},
	}
	if p.vertex {
		config.Backend, config.APIKey = genai.BackendVertexAI, ""
		config.Project, config.Location = c.Project, c.Location
		config.HTTPClient = withGoogleToken(config.HTTPClient)
	}
	sdk, err := genai.NewClient(context.Background(), config)
	if err != nil {
		return nil, errors.New("the SDK refuses the configuration")
	}
	return &gemini{models: sdk.Models, model: c.Model}, nil
}

func (g *gemini) complete(ctx context.Context, r Request) (Reply, error) {
	config := &genai.GenerateContentConfig{MaxOutputTokens: int32(min(r.MaxOutputTokens, math.MaxInt32))}
	if r.System != "" {
		config.SystemInstruction = genai.NewContentFromText(r.System, "")
	}
	res, err := g.models.GenerateContent(ctx, g.model, genai.Text(r.User), config)
	if err != nil {
		return Reply{}, err
	}
	if f := res.PromptFeedback; f != nil && f.BlockReason != "" && len(res.Candidates) == 0 {
		return Reply{}, &Error{Kind: Refused, Status: http.StatusOK}
	}
	if len(res.Candidates) == 0 || res.Candidates[0] == nil {
		return Reply{}, &Error{Kind: BadAnswer, Err: errForeign}
	}
	reply := Reply{Model: res.ModelVersion, Finish: geminiFinish(res.Candidates[0].FinishReason)}
	if u := res.UsageMetadata; u != nil { // thoughts are billed as output and counted apart
		reply.Usage = events.SummaryUsage{
			Input:  int64(u.PromptTokenCount),
			Output: int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
		}
	}
	reply.read(res.Candidates[0].Content)
	return reply, nil
}

// read takes the text of an answer, without the model's thoughts.
func (r *Reply) read(c *genai.Content) {
	if c == nil {
		return
	}
	var text strings.Builder
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.FunctionCall != nil:
			r.Finish = FinishTool
		default:
			text.WriteString(p.Text)
		}
	}
	r.Text = text.String()
}

func geminiFinish(f genai.FinishReason) Finish {
	switch f {
	case genai.FinishReasonStop:
		return FinishStop
	case genai.FinishReasonMaxTokens:
		return FinishLength
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		return FinishTool
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist,
		genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonLanguage:
		return FinishRefusal
	default:
		return FinishOther
	}
}
