package validate

// rule is one demand of an API.
type rule struct {
	name string
	text string // what it demands
}

// rules lists what [Messages] checks, by dialect. demanded has what some providers demand
// beyond.
var rules = map[string][]rule{
	anthropic: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"first_is_user", "a history begins with a user"},
		{"roles_alternate", "user and assistant in turns, no other role but the system's"},
		{"system_place", "a system message follows a user's, and an assistant's follows it, or nothing"},
		{"call_answered", "each tool_use has its tool_result in the next message"},
		{"results_first", "tool_results come before all other blocks of their message"},
		{"orphan_result", "a tool_result answers a tool_use of the message before it"},
		{"duplicate_result", "a tool_use is answered once"},
		{"duplicate_call_id", "no two tool_use of a history share an id"},
		{"server_result", "a server_tool_use has its result behind it in its message, or where only tool_results are between in the assistant's next one; no result is without"},
		{"citation", "a citation by an encrypted_index follows a result of a search"},
		{"call_id", "the id of a tool_use is of A-Z a-z 0-9 _ -"},
		{"empty_text", "a text has more than white space"},
		{"empty_content", "a message has a block"},
		{mediaByHash, "media are sent as data or by an address, not by their hash"},
	},
	openai: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"call_answered", "tool messages answer all calls before any other role"},
		{"orphan_result", "a tool message answers a call of the assistant before it"},
		{"duplicate_result", "a call is answered once"},
		{"duplicate_call_id", "no two calls of a message share an id"},
		{"empty_content", "an assistant message has content or calls"},
		{mediaByHash, "media are sent as data or by an address, not by their hash"},
	},
	neurolink: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"call_answered", "each tool_call has a tool_result among the tool messages after it"},
		{"orphan_result", "each tool_result has a tool_call among the tool messages before it; without id it may follow another one"},
	},
	responses: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"call_answered", "each call has its output before the model or the user goes on"},
		{"orphan_result", "an output answers a call before it, of its kind"},
		{"duplicate_result", "a call is answered once"},
		{"duplicate_call_id", "no two open calls share a call_id"},
		{"call_id", "a call_id has at most 64 characters"},
		{"reasoning_followed", "a reasoning item is followed by one that the model made"},
		{mediaByHash, "media are sent as data or by an address, not by their hash"},
	},
	gemini: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"first_is_user", "a history begins with a user's content, not with responses"},
		{"call_answered", "as many functionResponses follow as there were functionCalls; names are not compared"},
		{"call_follows_user", "a functionCall follows a content of the user"},
		{"orphan_result", "a functionResponse answers a functionCall of the content before it"},
		{"responses_apart", "a content of functionResponses has nothing else"},
		{"signature", "in the current turn the first functionCall of a step is signed, if any is"},
		{"empty_text", "a text has more than white space"},
		{"empty_content", "a message has a block"},
		{mediaByHash, "media are sent as data or by an address, not by their hash"},
	},
	bedrock: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"first_is_user", "a history begins with a user"},
		{"roles_alternate", "user and assistant in turns, no other role"},
		{"call_answered", "each toolUse has its toolResult in the next message"},
		{"results_first", "tool_results come before all other blocks of their message"},
		{"orphan_result", "a toolResult answers a toolUse of the message before it"},
		{"duplicate_result", "a toolUse is answered once"},
		{"duplicate_call_id", "no two toolUse of a history share an id"},
		{"call_id", "the id of a toolUse is 1 to 64 of A-Z a-z 0-9 _ -"},
		{"document_text", "a document has a text beside it"},
		{"empty_text", "a text has more than white space"},
		{"empty_content", "a message has a block"},
		{mediaByHash, "media are sent as data or by an address, not by their hash"},
	},
	aiSDK: {
		{"bad_shape", "a message, a block or its fields are not as the API requires"},
		{"call_answered", "tool messages answer all calls before any other role"},
		{"orphan_result", "a tool-result answers a tool-call of the assistant before it"},
		{"duplicate_result", "a tool-call is answered once"},
		{"duplicate_call_id", "no two calls of a message share an id"},
		{"empty_content", "a message has a block"},
		{mediaByHash, "media are sent as data or by an address, not by their hash"},
	},
}
