package validate

import "strings"

// The histories of validate_test.go in the dialects whose items, contents and parts are not
// those of chat messages.

func init() {
	valid[responses] = map[string][]string{
		"empty": {},
		"long": {
			`{"type":"message","role":"developer","content":"a"}`,
			`{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_image","image_url":"u"}]}`,
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"g"}`,
			`{"type":"web_search_call","id":"ws_1","status":"completed"}`,
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{"}`,
			`{"type":"custom_tool_call","call_id":"c2","name":"n","input":""}`,
			`{"type":"custom_tool_call_output","call_id":"c2","output":""}`,
			`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"x"}]}`,
			`{"type":"shell_call","call_id":"c3","action":{"commands":["ls"]}}`,
			`{"type":"shell_call_output","call_id":"c3","output":[]}`,
			`{"type":"local_shell_call","id":"ls_1","call_id":"c4","action":{}}`,
			`{"type":"local_shell_call_output","id":"lo_1","output":"x"}`,
			`{"type":"apply_patch_call","call_id":"c5","operation":{}}`,
			`{"type":"apply_patch_call_output","call_id":"c5","status":"completed"}`,
			`{"type":"mcp_approval_request","id":"m1","name":"n","server_label":"s","arguments":"{}"}`,
			`{"type":"mcp_approval_response","approval_request_id":"m1","approve":true}`,
			`{"type":"tool_search_call","execution":"server","arguments":{}}`,
			`{"type":"tool_search_output","execution":"server","tools":[]}`,
			`{"type":"compaction","encrypted_content":"g"}`,
			`{"type":"item_reference","id":"msg_0"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`,
		},
		"calls open at the end": {
			`{"role":"user","content":"a"}`,
			`{"type":"reasoning","summary":[]}`,
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
			`{"type":"function_call","call_id":"c2","name":"n","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"x"}`,
		},
	}
	plants[responses] = []planted{
		{"a user before the output", []string{
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
			`{"role":"user","content":"a"}`,
		}, []string{"call_answered"}},
		{"another response before the output", []string{
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
			`{"type":"function_call","call_id":"c2","name":"n","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c2","output":"x"}`,
			`{"type":"message","role":"assistant","content":"a"}`,
		}, []string{"call_answered"}},
		{"an output of nothing", []string{`{"type":"function_call_output","call_id":"c1","output":"x"}`}, []string{"orphan_result"}},
		{"an output of another kind", []string{
			`{"type":"custom_tool_call","call_id":"c1","name":"n","input":"x"}`,
			`{"type":"function_call_output","call_id":"c1","output":"x"}`,
		}, []string{"orphan_result"}},
		{"two outputs", []string{
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"x"}`,
			`{"type":"function_call_output","call_id":"c1","output":"x"}`,
		}, []string{"duplicate_result"}},
		{"a call_id twice", []string{
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
		}, []string{"duplicate_call_id"}},
		{"a call_id of 65 characters", []string{
			`{"type":"function_call","call_id":"` + strings.Repeat("c", 65) + `","name":"n","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"` + strings.Repeat("c", 65) + `","output":""}`,
		}, []string{"call_id"}},
		{"reasoning before a user", []string{
			`{"type":"reasoning","id":"rs_1","summary":[]}`,
			`{"role":"user","content":"a"}`,
		}, []string{"reasoning_followed"}},
		{"reasoning before an output", []string{
			`{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`,
			`{"type":"reasoning","id":"rs_1","summary":[]}`,
			`{"type":"function_call_output","call_id":"c1","output":"x"}`,
		}, []string{"reasoning_followed"}},
		{"unknown type", []string{`{"type":"tool_use","id":"a"}`}, []string{"bad_shape"}},
		{"unknown role", []string{`{"role":"tool","content":"a"}`}, []string{"bad_shape"}},
		{"no content", []string{`{"role":"user"}`}, []string{"bad_shape"}},
		{"no blocks", []string{`{"role":"user","content":[]}`}, []string{"bad_shape"}},
		{"arguments an object", []string{`{"type":"function_call","call_id":"c1","name":"n","arguments":{}}`}, []string{"bad_shape"}},
		{"a call without call_id", []string{`{"type":"function_call","id":"fc_1","name":"n","arguments":"{}"}`}, []string{"bad_shape"}},
		{"no output", []string{`{"type":"function_call_output","call_id":"c1"}`}, []string{"bad_shape"}},
		{"no JSON", []string{`{`}, []string{"bad_shape"}},
	}

	valid[gemini] = map[string][]string{
		"empty": {},
		"long": {
			`{"parts":[{"text":"a"}],"role":"user"}`,
			`{"role":"user","parts":[{"text":"b"},{"inlineData":{"mimeType":"image/png","data":""}}]}`,
			`{"role":"model","parts":[{"text":"","thoughtSignature":"s"},{"text":"t","thought":true},{"functionCall":{"name":"n","args":{}},"thoughtSignature":"s"},{"functionCall":{"name":"m","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":""}}},{"functionResponse":{"name":"m","response":{}}}]}`,
			`{"role":"model","parts":[{"function_call":{"id":"i","name":"n","args":{}},"thought_signature":"s"}]}`,
			`{"role":"function","parts":[{"function_response":{"id":"i","name":"n","response":{}}}]}`,
			`{"role":"model","parts":[{"executableCode":{}},{"codeExecutionResult":{}}]}`,
			`{"role":"model","parts":[{"text":"b"}]}`,
		},
		"unsigned calls of earlier turns": {
			`{"role":"user","parts":[{"text":"a"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"n","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{}}}]}`,
			`{"role":"user","parts":[{"text":"a"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"n","args":{}},"thoughtSignature":"s"}]}`,
		},
		"some responses at the end": {
			`{"role":"user","parts":[{"text":"a"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"n"}},{"functionCall":{"name":"n"}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{}}}]}`,
		},
	}
	const user, call = `{"role":"user","parts":[{"text":"a"}]}`, `{"role":"model","parts":[{"functionCall":{"id":"i","name":"n","args":{}}}]}`
	const response = `{"role":"user","parts":[{"functionResponse":{"id":"i","name":"n","response":{}}}]}`
	plants[gemini] = []planted{
		{"first is a call", []string{call, response}, []string{"first_is_user"}},
		{"a call without its response", []string{user, call, user}, []string{"call_answered"}},
		{"more responses than calls", []string{
			user, call, `{"role":"user","parts":[` +
				`{"functionResponse":{"id":"i","name":"n","response":{}}},{"functionResponse":{"id":"i","name":"n","response":{}}}]}`,
		}, []string{"call_answered"}},
		{"a call behind words of the model", []string{user, `{"role":"model","parts":[{"text":"b"}]}`, call}, []string{"call_follows_user"}},
		{"a response of nothing", []string{user, response}, []string{"orphan_result"}},
		{"a response of another call", []string{user, call, `{"role":"user","parts":[{"functionResponse":{"id":"j","name":"n","response":{}}}]}`}, []string{"orphan_result"}},
		{"words beside a response", []string{user, call, `{"role":"user","parts":[{"functionResponse":{"id":"i","name":"n","response":{}}},{"text":"a"}]}`}, []string{"responses_apart"}},
		{"an unsigned call of the current turn", []string{
			user, `{"role":"model","parts":[{"functionCall":{"id":"i","name":"n","args":{}},"thoughtSignature":"s"}]}`, response, call,
		}, []string{"signature"}},
		{"a blank text", []string{`{"role":"user","parts":[{"text":" "}]}`}, []string{"empty_text"}},
		{"no parts", []string{`{"role":"user","parts":[]}`}, []string{"empty_content"}},
		{"unknown role", []string{`{"role":"assistant","parts":[{"text":"a"}]}`}, []string{"bad_shape"}},
		{"a response without response", []string{user, call, `{"role":"user","parts":[{"functionResponse":{"name":"n"}}]}`}, []string{"bad_shape"}},
		{"a call without name", []string{user, `{"role":"model","parts":[{"functionCall":{"args":{}}}]}`}, []string{"bad_shape"}},
		{"no JSON", []string{`{`}, []string{"bad_shape"}},
	}

	valid[bedrock] = map[string][]string{
		"empty": {},
		"long": {
			`{"role":"user","content":[{"text":"a"},{"document":{"name":"d","format":"pdf","source":{}}},{"cachePoint":{"type":"default"}}]}`,
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"","signature":"s"}}},` +
				`{"text":"b"},{"toolUse":{"toolUseId":"t1","name":"n","input":{}}},` +
				`{"toolUse":{"toolUseId":"t2","name":"n","input":{}}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"t2","content":[{"text":""}]}},{"toolResult":{"toolUseId":"t1","content":[]}},{"text":"c"}]}`,
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"nova_grounding",` +
				`"input":{},"type":"server_tool_use"}},{"toolResult":{"toolUseId":"t1",` +
				`"content":[],"type":"nova_grounding_result"}},{"text":"d"}]}`,
		},
		"some results at the end": {
			`{"role":"user","content":[{"text":"a"}]}`,
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"n","input":{}}},{"toolUse":{"toolUseId":"t2","name":"n","input":{}}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"t2","content":[]}}]}`,
		},
	}
	const bUser, bCall = `{"role":"user","content":[{"text":"a"}]}`, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"n","input":{}}}]}`
	plants[bedrock] = []planted{
		{"first is an assistant", []string{`{"role":"assistant","content":[{"text":"a"}]}`}, []string{"first_is_user"}},
		{"two users", []string{bUser, bUser}, []string{"roles_alternate"}},
		{"a call passed over", []string{bUser, bCall, bUser}, []string{"call_answered"}},
		{"text before a result", []string{bUser, bCall, `{"role":"user","content":[{"text":"b"},{"toolResult":{"toolUseId":"t1","content":[]}}]}`}, []string{"results_first"}},
		{"a result of nothing", []string{`{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}}]}`}, []string{"orphan_result"}},
		{"two results", []string{bUser, bCall, `{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}},{"toolResult":{"toolUseId":"t1","content":[]}}]}`}, []string{"duplicate_result"}},
		{"an id twice", []string{
			bUser, `{"role":"assistant","content":[` +
				`{"toolUse":{"toolUseId":"t1","name":"n","input":{}}},{"toolUse":{"toolUseId":"t1","name":"n","input":{}}}]}`,
		}, []string{"duplicate_call_id"}},
		{"an id of before", []string{
			bUser, bCall, `{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}}]}`, bCall,
		}, []string{"duplicate_call_id"}},
		{"a document alone", []string{`{"role":"user","content":[{"document":{"name":"d","format":"pdf","source":{}}}]}`}, []string{"document_text"}},
		{"a blank text", []string{`{"role":"user","content":[{"text":"\n"}]}`}, []string{"empty_text"}},
		{"no blocks", []string{`{"role":"user","content":[]}`}, []string{"empty_content"}},
		{"an id of another alphabet", []string{
			bUser, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t.1","name":"n","input":{}}}]}`, `{"role":"user","content":[{"toolResult":{"toolUseId":"t.1","content":[]}}]}`,
		}, []string{"call_id"}},
		{"two members", []string{`{"role":"user","content":[{"text":"a","type":"text"}]}`}, []string{"bad_shape"}},
		{"reasoning of nothing", []string{bUser, `{"role":"assistant","content":[{"reasoningContent":{}}]}`}, []string{"bad_shape"}},
		{"content a string", []string{`{"role":"user","content":"a"}`}, []string{"bad_shape"}},
	}

	valid[aiSDK] = map[string][]string{
		"empty": {},
		"long": {
			`{"role":"system","content":"a"}`,
			`{"role":"user","content":""}`,
			`{"role":"user","content":[{"type":"text","text":""},{"type":"image","image":"u"},{"type":"file","data":"","mediaType":"application/pdf"}]}`,
			`{"role":"assistant","content":[{"type":"reasoning","text":"r"},` +
				`{"type":"tool-call","toolCallId":"c0","toolName":"web","input":{},"providerExecuted":true},` +
				`{"type":"tool-result","toolCallId":"c0","toolName":"web","output":{"type":"json","value":1}},` +
				`{"type":"tool-call","toolCallId":"c1","toolName":"n","input":{}},` +
				`{"type":"tool-call","toolCallId":"c2","toolName":"n","args":{}}]}`,
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c2","toolName":"n","result":"x"}]}`,
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"n","output":{"type":"error-text","value":"x"}}]}`,
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c3","toolName":"n","input":{}},{"type":"tool-approval-request","approvalId":"a","toolCallId":"c3"}]}`,
			`{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"a","approved":false}]}`,
			`{"role":"assistant","content":"b"}`,
		},
		"calls open at the end": {`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"n","input":{}}]}`},
	}
	const aCall = `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"n","input":{}}]}`
	const aResult = `{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"n","output":{"type":"text","value":"x"}}]}`
	plants[aiSDK] = []planted{
		{"a call without its result", []string{aCall, `{"role":"user","content":"a"}`}, []string{"call_answered"}},
		{"a result of nothing", []string{aResult}, []string{"orphan_result"}},
		{"two results", []string{aCall, aResult, aResult}, []string{"duplicate_result"}},
		{"a call id twice", []string{
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"n","input":{}},` +
				`{"type":"tool-call","toolCallId":"c1","toolName":"n","input":{}}]}`,
		}, []string{"duplicate_call_id"}},
		{"no parts", []string{`{"role":"assistant","content":[]}`}, []string{"empty_content"}},
		{"unknown role", []string{`{"role":"data","content":"a"}`}, []string{"bad_shape"}},
		{"a part of another dialect", []string{`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`}, []string{"bad_shape"}},
		{"a call without input", []string{`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"n"}]}`}, []string{"bad_shape"}},
		{"a result that is a text", []string{aCall, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"n","output":"x"}]}`}, []string{"bad_shape"}},
		{"content null", []string{`{"role":"user","content":null}`}, []string{"bad_shape"}},
	}
}
