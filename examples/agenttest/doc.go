// Package agenttest is the environment in which the example agents are tested: a worker with its
// server, and a fake model that counts tokens, calls tools, and refuses what is too long.
//
//	m := agenttest.Model(t, events.OpenAI, 3000)
//	url := agenttest.Compactd(t)
//
// The model checks every call as its provider would: a history that is not valid, or
// longer than its window, is refused with the provider's own text. [Strict] also checks what
// depends on earlier answers, such as signatures of thinking.
package agenttest
