// Package agenttest is the environment in which the example agents are tested: a worker with its
// server, and a fake model that counts tokens, calls tools, and refuses what is too long.
//
//	p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4"}
//	worker := agenttest.HTTP(t)
//
// A [Strict] checks every call as its provider would: a history that is not valid, or longer than
// its window, is refused with the provider's own text. It also checks what depends on earlier
// answers, such as signatures of thinking.
package agenttest
