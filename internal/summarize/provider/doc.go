// Package provider opens language models of all usual providers: every
// OpenAI-compatible service, Anthropic and Google, and the clouds that serve them.
//
//	m, err := provider.New(provider.Config{Provider: provider.Anthropic, Model: "claude-haiku-4-5", Key: key})
//	models, err := provider.Open("google,ollama/llama3.3,embedded", os.Getenv)
//
// There are three wire formats: chat completions, messages and generateContent. Each
// is one file that writes a request and reads an answer. Everything around a call is
// done once for all of them: time-outs, retries, circuit breaker, rate limit, bounds,
// the check of addresses, and what a refusal means. Package sdktest, a module of its
// own, compares requests and answers with those of the official SDKs.
//
// It links the libraries of Google and AWS that find credentials, so it is imported
// by cmd/worker and by tests.
//
// # Guarantees
//
//   - A model connects to the host of its base URL alone, and to addresses that
//     fit it; redirects are not followed, and no environment variable of a proxy is
//     read. The clouds' own credentials are the exception: Google's and AWS's
//     libraries find them, and call the services that issue tokens.
//   - The bytes read of an answer are bounded, and so is the time.
//   - Errors hold status, codes and causes: neither keys nor messages of providers,
//     which may quote keys and prompts.
//   - A request carries no tools.
//
// # Concurrency
//
// Models are safe for concurrent use. One is made once and kept: breaker and rate
// limit are its own.
//
// # On failure
//
// Every failure is a [*model.Error], but for the caller's own context. Rate limits,
// faults and time-outs are tried again within Attempts and Timeout; nothing else
// is. docs/summaries.md has a table.
package provider
