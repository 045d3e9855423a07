package provider

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
)

// gemini speaks Google's generateContent, of AI Studio and of Vertex AI:
// https://ai.google.dev/api/generate-content and
// https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference,
// read 2026-11-22; the field names are those of genai v1.77.0.
type gemini struct{ endpoint *endpoint }

func newGoogle(c Config, p preset) (completer, error) {
	name := c.Model
	if !strings.HasPrefix(name, "models/") && !strings.HasPrefix(name, "tunedModels/") {
		name = "models/" + name
	}
	e := newEndpoint(c, p, "v1beta/"+name+":generateContent")
	e.header.Set("X-Goog-Api-Key", string(c.Key))
	e.authorize = serverTimeout
	return &gemini{e}, nil
}

func newGeminiVertex(c Config, p preset) (completer, error) {
	e := newEndpoint(c, p, "v1beta1/"+vertexModel(c)+":generateContent")
	tokens := newGoogleTokens()
	e.authorize = func(req *http.Request, body []byte) error {
		if err := serverTimeout(req, body); err != nil {
			return err
		}
		return tokens.authorize(req, body)
	}
	return &gemini{e}, nil
}

// vertexModel is the full name of a model. A name may be Google's own, that of a
// publisher as in meta/llama, one of the project as in models/7, or full already.
func vertexModel(c Config) string {
	place := "projects/" + c.Project + "/locations/" + c.Location + "/"
	publisher, name, other := strings.Cut(c.Model, "/")
	switch {
	case !other:
		return place + "publishers/google/models/" + c.Model
	case publisher == "projects":
		return c.Model
	case publisher == "publishers", publisher == "models":
		return place + c.Model
	default:
		return place + "publishers/" + publisher + "/models/" + name
	}
}

// serverTimeout sends the deadline of a call, so that Google's servers stop with it:
// https://cloud.google.com/apis/docs/system-parameters, read 2026-11-22.
func serverTimeout(req *http.Request, _ []byte) error {
	if deadline, ok := req.Context().Deadline(); ok {
		seconds := math.Ceil(time.Until(deadline).Seconds())
		req.Header.Set("X-Server-Timeout", strconv.FormatInt(int64(max(seconds, 1)), 10))
	}
	return nil
}

type (
	geminiRequest struct {
		Contents []geminiContent `json:"contents"`
		System   *geminiContent  `json:"systemInstruction,omitzero"`
		Config   geminiConfig    `json:"generationConfig"`
	}
	geminiContent struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	}
	geminiPart struct {
		Text string `json:"text"`
	}
	geminiConfig struct {
		MaxOutputTokens int64 `json:"maxOutputTokens"`
	}
)

// geminiText is a content as genai writes it: that of the system has the role user too.
func geminiText(s string) geminiContent {
	return geminiContent{Role: "user", Parts: []geminiPart{{s}}}
}

// geminiAnswer has the fields of type GenerateContentResponse that a summary needs.
type geminiAnswer struct {
	ModelVersion   string `json:"modelVersion"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Candidates []struct {
		FinishReason string `json:"finishReason"`
		Content      struct {
			Parts []geminiAnswerPart `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	Usage struct { // thoughts are billed as output and counted apart
		Input    tokens `json:"promptTokenCount"`
		Output   tokens `json:"candidatesTokenCount"`
		Thoughts tokens `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

type geminiAnswerPart struct {
	Text         string    `json:"text"`
	Thought      bool      `json:"thought"`
	FunctionCall codec.Raw `json:"functionCall"`
}

func (g *gemini) complete(ctx context.Context, r model.Request) (model.Reply, error) {
	request := geminiRequest{
		Contents: []geminiContent{geminiText(r.User)},
		Config:   geminiConfig{MaxOutputTokens: min(r.MaxOutputTokens, math.MaxInt32)},
	}
	if r.System != "" {
		system := geminiText(r.System)
		request.System = &system
	}
	var answer geminiAnswer
	if err := g.endpoint.post(ctx, request, &answer); err != nil {
		return model.Reply{}, err
	}
	u := answer.Usage
	reply := model.Reply{Usage: events.SummaryUsage{Input: int64(u.Input), Output: int64(u.Output + u.Thoughts)}}
	if len(answer.Candidates) == 0 {
		if answer.PromptFeedback.BlockReason != "" {
			return reply, &model.Error{Kind: model.Refused, Status: http.StatusOK}
		}
		return reply, &model.Error{Kind: model.BadAnswer, Err: errForeign}
	}
	first := answer.Candidates[0]
	reply.Model, reply.Finish = answer.ModelVersion, finishOf(geminiFinishes, first.FinishReason)
	readGemini(&reply, first.Content.Parts)
	return reply, nil
}

// readGemini takes the text of an answer, without the model's thoughts.
func readGemini(r *model.Reply, parts []geminiAnswerPart) {
	var text strings.Builder
	for _, p := range parts {
		switch {
		case p.Thought:
		case len(p.FunctionCall) > 0 && p.FunctionCall.Kind() == '{':
			r.Finish = model.FinishTool
		default:
			text.WriteString(p.Text)
		}
	}
	r.Text = text.String()
}

// geminiFinishes: https://ai.google.dev/api/generate-content#FinishReason, read 2026-11-22.
var geminiFinishes = map[string]model.Finish{
	"STOP":                    model.FinishStop,
	"MAX_TOKENS":              model.FinishLength,
	"MALFORMED_FUNCTION_CALL": model.FinishTool, "UNEXPECTED_TOOL_CALL": model.FinishTool, "TOO_MANY_TOOL_CALLS": model.FinishTool,
	"SAFETY": model.FinishRefusal, "RECITATION": model.FinishRefusal, "BLOCKLIST": model.FinishRefusal,
	"PROHIBITED_CONTENT": model.FinishRefusal, "SPII": model.FinishRefusal, "LANGUAGE": model.FinishRefusal,
}
