package overflow

import (
	"regexp"

	"compactd/internal/lazyregexp"
)

// long are the words of a refusal for length with the status of a rate limit: the account may not send as
// much as the model accepts, and waiting changes nothing.
var long = compile([]rule{
	{"anthropic", ClassInput, `extra usage is required for (?:long[- ]context|\d+m context)`},
})

// overflows are the words of providers that refuse a call for its length, the
// more specific before the general. The first that is found decides. They are
// compared with text in lower case, with single spaces and without back-quotes.
// Patterns marked 000 are those of the reference document, which does not
// always name the provider that writes them today.
var overflows = compile([]rule{
	{"anthropic", ClassSum, `input length and max_tokens exceed context limit: {actual} \+ {output} > {limit}`},
	{"cohere", ClassInput, `too many tokens: (?:.*size limit exceeded|multi-hop prompt is too long)`},
	{"fireworks", ClassInput, `prompt is too long: {actual}, model maximum context length: {limit}`},
	{"anthropic", ClassInput, `prompt is too long(?:: {actual} tokens > {limit})?`}, // 000
	{"anthropic", ClassInput, `request size exceeds model context window`},

	{"anthropic", ClassMedia, `too much media: \d+ document pages \+ \d+ images > {limit}`},
	{"anthropic", ClassMedia, `too many images and documents: \d+ \+ \d+ > {limit}`},
	{"", ClassMedia, `too many (?:images|documents|media)\b(?:.*?\b(?:max|maximum|limit|at most|up to|only)(?: (?:is|of))? {limit}\b)?`},

	{"mistral", ClassInput, `prompt contains {actual} tokens.*?too large for model with {limit} maximum context length`},
	{"vllm", ClassSum, `maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains (?:at least )?{actual} input tokens`},
	{"vllm", ClassSum, `max_completion_tokens'? is too large: {output}\. this model's maximum context length is {limit} tokens and your request has {actual} input tokens`},
	{"vllm", ClassSum, `you passed {actual} input tokens and requested {output} output tokens\. however, the model's context length is only {limit} tokens`},
	{"vllm", ClassInput, `the decoder prompt \(length {actual}\) is longer than the maximum model length of {limit}`},
	{"vllm", ClassInput, `the prompt \(total length {actual}\) is too long to fit into the model \(context length {limit}\)`},
	{"vllm", ClassInput, `max_tokens must be at least 1, got -`}, // what the prompt left of the window
	{"openrouter", ClassSum, `this endpoint's maximum context length is {limit} tokens\. however, you requested about {total} tokens(?: \([^()]*?(?:, {output} in the output)?\))?`},
	{"sglang", ClassSum, `requested token count exceeds the model's maximum context length of {limit} tokens(?:\. you requested a total of {total} tokens: {actual} tokens from the input messages and {output} tokens for the completion)?`},
	{"sglang", ClassInput, `input length \({actual}(?: tokens)?\) exceeds (?:the |model's )?maximum (?:allowed|context) length \({limit}(?: tokens)?\)`},
	{"openai", ClassInput, `maximum context length is {limit}.*?(?:resulted in|your (?:messages|prompt|input|request)[a-z' ]*) {actual}`}, // 000
	{"openai", ClassSum, `maximum context length is {limit} tokens[.,] however,? you requested {total} tokens(?: \([^()]*?{output} (?:in|for) the completion\))?`},
	{"openai", ClassInput, `input tokens exceed the configured limit of {limit} tokens(?:.*?your messages resulted in {actual})?`},
	{"openai", ClassBytes, `invalid '(?:messages|input)\[\d+\]\.(?:content|output)[^']*': string too long`},
	{"zai", ClassInput, `request {actual} input tokens exceeds the model's maximum context length {limit}`},
	{"openai", ClassInput, `your input exceeds the context window of this model`},
	{"openai", ClassInput, `requested {actual} tokens, max {limit} tokens per request`},
	{"openai", ClassInput, `maximum context length(?:(?: is| of|:) {limit})?`}, // 000

	{"cerebras", ClassInput, `reduce the length of the messages or completion\. current length is {actual} while limit is {limit}`},
	{"groq", ClassInput, `please reduce the length of the messages or completion`},
	{"openai", ClassInput, `reduce the length of the (?:messages|prompt)`}, // 000
	{"xai", ClassInput, `maximum prompt length is {limit} but the request contains {actual} tokens`},
	{"together", ClassInput, `input \({actual} tokens\) is longer than the model's context length \({limit} tokens\)`},
	// tgi is text-generation-inference: Hugging Face, Together
	{"tgi", ClassSum, `inputs tokens \+ max_new_tokens must be <= {limit}(?:\. given: {actual} inputs tokens and {output} max_new_tokens)?`},
	{"tgi", ClassOutput, `max_new_tokens must be <= {limit}`}, // without the inputs of the line above
	{"tgi", ClassInput, `inputs must have less than {limit} tokens(?:\. given: {actual})?`},
	{"cohere", ClassInput, `too many tokens: total number of tokens (?:in the prompt|\(prompt and prediction\)) cannot exceed {limit}(?: - received {actual})?`},
	{"copilot", ClassInput, `prompt token count of {actual} exceeds the limit of {limit}`},
	{"copilot", ClassInput, `model_max_prompt_tokens_exceeded`},
	{"github", ClassInput, `request body too large for .*?max size: {limit} tokens`},
	{"moonshot", ClassInput, `exceeded model token limit: {limit}(?: \(re ?quested: {actual}\))?`},
	{"minimax", ClassInput, `context window exceeds limit`}, // the number after it is an error code
	{"dashscope", ClassInput, `range of input length should be \[1, {limit}\]`},
	{"zai", ClassInput, `model_context_window_exceeded`},

	{"google", ClassInput, `input token count(?: is)? \(?{actual}\)? (?:exceeds the maximum number of tokens allowed|but model only supports up to) \(?{limit}`},
	{"google", ClassInput, `input token count exceeds the maximum number of tokens allowed \(?{limit}`},
	{"google", ClassInput, `exceeds the maximum number of tokens(?: \({actual} > {limit}\))?`}, // 000
	{"google", ClassInput, `content is too long`},                                              // 000
	{"google", ClassInput, `cannot truncate to {limit}, required {actual}`},
	{"google", ClassBytes, `request payload size exceeds the limit`},
	{"bedrock", ClassInput, `max input tokens: {limit}, request input token count: {actual}`},
	{"bedrock", ClassInput, `input is too long`},                                             // 000
	{"bedrock", ClassInput, `malformed input request: expected maxlength: \d+, actual: \d+`}, // characters
	{"", ClassInvalid, `validationexception.*\b(?:next|page|pagination|continuation|client|session|access)[ _-]?token`},
	{"bedrock", ClassInput, `validationexception.*\b(?:(?:` + lengthWords + `)\b.*\btokens?|tokens?\b.*\b(?:` + lengthWords + `))\b`}, // 000, in either order
	{"bedrock", ClassInput, `exceeds the model's maximum`},                                                                            // 000
	{"bedrock", ClassBytes, `value at 'body' failed to satisfy constraint: member must have length less than or equal to`},
	{"azure", ClassInput, `content_length_exceeded`}, // 000

	{"llama.cpp", ClassInput, `(?:request|prompt) \({actual} tokens\) exceeds (?:the )?available context size \({limit} tokens\)`},
	{"llama.cpp", ClassInput, `exceeds the available context size`},
	{"llama.cpp", ClassInput, `exceed_context_size_error`},
	{"llama.cpp", ClassInput, `requested tokens \({actual}\) exceed context window of {limit}`},
	{"lmstudio", ClassInput, `trying to keep the first {actual} tokens when context the overflows\. however, the model is loaded with context length of only {limit} tokens`},
	{"lmstudio", ClassInput, `cannot truncate prompt with n_keep \({actual}\) >= n_ctx \({limit}\)`},
	{"lmstudio", ClassInput, `initial prompt is greater than the context length(?: \(n_keep: {actual} ?>= ?n_ctx: {limit}\))?`},
	{"omlx", ClassInput, `prompt too long: {actual} tokens exceeds max context window of {limit} tokens`},
	{"ollama", ClassInput, `input length exceeds the (?:maximum )?context length`},
	{"ollama", ClassInput, `prompt too long; exceeded (?:max )?context length`},

	{"openrouter", ClassInput, `context_length_exceeded`}, // 000
	{"mistral", ClassInput, `context length exceeded`},    // 000
	{"mistral", ClassInput, `maximum number of tokens`},   // 000
	{"anthropic", ClassBytes, `request_too_large|request exceeds the maximum size`},
	{"", ClassBytes, `(?:request entity|payload|content|request body|request) too large`},
	{"", ClassBytes, `function_payload_too_large|maximum request body size|string value length \(\d+\) exceeds the maximum`},
	{"", ClassInput, `context.?window.?exceeded|(?:exceeds?|exceeded) the (?:model's )?context (?:window|length|size|limit)`},
	{"anthropic", ClassInput, `too many tokens`}, // 000
})

// lengthWords go with tokens where a length is meant.
const lengthWords = `input|prompt|context|count|limit|maximum|max|allowed|exceed\w*|too (?:many|long|large)`

// tooLong is what the words of no known provider have in common, in any order within one
// sentence: what was sent, that it is tokens, a window or a length, a bound, and that it is
// exceeded.
var tooLong = []func() *regexp.Regexp{
	lazyregexp.New(`\b(?:inputs?|prompts?|contexts?|messages?|conversation|requests?|history|tokens)\b`),
	lazyregexp.New(`\b(?:tokens?|context (?:window|length|size|limit)|(?:prompts?|inputs?|conversation|history|messages|model) (?:length|len|size)|(?:prompts?|inputs?|conversation|history|messages)\b.*\b(?:max|maximum) (?:length|len|size))\b`),
	lazyregexp.New(`\b(?:limits?|limited|maximum|max|allowed|allows|supports?|supported|window|capacity|length|available|room)\b`),
	lazyregexp.New(`\b(?:exceed\w*|over|above|beyond|surpass\w*|overflow\w*|reached|ran out|out of (?:room|space)|too (?:long|large|many|big)|(?:greater|larger|longer|more|bigger|higher|less|smaller|fewer) than|(?:not|n't) fit)\b`),
}

// bareLong states the same without a bound.
var bareLong = lazyregexp.New(`\b(?:prompt|input|context|conversation|history|messages)(?: tokens?| context)?(?: length| size| count)?(?: is| are| was| were)? too (?:long|large|big)\b`)

// tooLongChinese is [tooLong] in the words of gateways of China.
var tooLongChinese = lazyregexp.New(`(?:上下文|输入|提示词|对话|会话|prompt|tokens?)[^，]*(?:超过|超出|超限|超长|过长|太长|过大)|(?:超过|超出)[^，]*(?:上下文|最大长度|长度限制|tokens?)`)

// A sentence about an output or about something else than a history is not about an input
// that is too long.
var (
	ofOutput = lazyregexp.New(`\b(?:output|completion|generat\w*|max_(?:completion_|output_|new_)?tokens|max(?:output)?tokens|maximum tokens|new tokens|answer|response)\b`)
	ofOther  = lazyregexp.New(`\b(?:images?|audio|videos?|files?|pdf|pages?|pixels?|dimensions?|characters?|chars|bytes?|headers?|ur[li]|names?|descriptions?|schemas?|identifiers?|items|elements|tools)\b|图片|图像|文件|音频|视频|字符`)
	sentence = lazyregexp.New(`[.;!?](?: |$)|[。；！？]`)
	path     = lazyregexp.New(`[a-z]+\[\d+\][\w.\[\]]*|[a-z]+(?:\.\d+)+[\w.]*`) // of a member of a request
)

// outputs are the words for a maximum output that is too large by itself.
var outputs = compile([]rule{
	{"anthropic", ClassOutput, `max_tokens: {output} > {limit}, which is the maximum allowed number of output tokens`},
	{"openai", ClassOutput, `max_(?:completion_|output_)?tokens is too large: {output}\. this model supports at most {limit}`},
	{"openai", ClassOutput, `max_tokens or model output limit was reached`},
	{"bedrock", ClassOutput, `the maximum tokens you requested exceeds? the model limit of {limit}`},
	{"cohere", ClassOutput, `max tokens must be less than or equal to {limit}, the maximum output`},
	{"groq", ClassOutput, `max_(?:completion_)?tokens must be less than or equal to {limit}`},
	{"volcengine", ClassOutput, `max_(?:completion_)?tokens specified in the request (?:are|is) not valid.*expected a value <= {limit}, but got {output}`},
	{"", ClassOutput, `exceeded the {limit} output token maximum`},
	{"google", ClassOutput, `maxoutputtokens value of {output} but the supported range is`},
	{"dashscope", ClassOutput, `range of max_(?:completion_)?tokens should be \[1, {limit}\]`},
	{"openai", ClassOutput, `invalid 'max_(?:completion_|output_)?tokens': integer above maximum value\. expected a value <= {limit}, but got {output}`},
	{"", ClassOutput, `(?:^|[^+] |[^\w ])(?:max_(?:completion_|output_)?tokens|max(?:output)?tokens)\b'?(?: \(?{output}\)?)? (?:cannot exceed|must not exceed|(?:must|should) be (?:less than or equal to|at most|no more than|<=)) {limit}`},
})

// others are the words of the remaining classes.
var others = compile([]rule{
	{"anthropic", ClassThinking, `thinking block\b.*\bbound to (?:a|another) (?:different )?conversation|\bprefix_(?:binding_)?mismatch`},
	{"anthropic", ClassThinking, `\binvalid .?signature.? in .?(?:redacted_)?thinking|\bredacted_thinking.? blocks? .*\bcannot be modified`},
	{"", ClassAllowance, `request too large for.*(?:per min|tpm|per day).*limit:? {limit}, requested:? {actual}`},
	{"", ClassBilling, `insufficient.?(?:quota|balance|credit|funds)|upgrade to a paid|(?:monthly|spend\w*) limit|(?:purchase|buy)\w* (?:more )?credits|余额不足|欠费|credit balance is too low|requires more credits|billing_|payment required|spending limit`},
	{"", ClassRate, `rate.?limit|too many requests|(?:tokens|requests)[ _]per[ _](?:min|day|hour|second)|per minute|\((?:tpm|tpd|rpm|rpd)\)`},
	{"", ClassRate, `resource.?exhausted|resource has been exhausted|throttl|quota (?:limit )?(?:exceeded|metric)|capacity exceeded|速率限制|频率|限流|每分钟|请求过多|并发|wait before trying again`},
	{"", ClassBilling, `exceeded your current quota`},
	{"", ClassAuth, `authentication|permission_?(?:error|denied)|unauthori[sz]ed|forbidden|access.?denied|expiredtoken`},
	{"", ClassAuth, `(?:invalid|incorrect|missing|expired)[ _-](?:x-)?(?:api[ _-]?key|auth|credential)|api.?key.?(?:not valid|invalid)|security token included in the request is`},
	{"", ClassFilter, `content_filter|content management policy|responsibleaipolicyviolation|content_policy|prohibited_content|violat\w+ (?:our|the) .*polic`},
	{"", ClassFilter, `blocked (?:due to|by|for|because of) .*(?:safety|policy|guardrail|filter)`},
})

// quoting are words after which an error quotes its input.
var quoting = compile([]rule{
	{"", ClassInvalid, `input should be|input_value=|invalid (?:value|type|json)\b|failed to parse|could not parse|cannot parse|unexpected token`},
})

// last are the words for all other errors.
var last = compile([]rule{
	{"", ClassServer, `overloaded|server_error|internal.?(?:server.?)?error|service.?unavailable|bad gateway|timed? ?out|high demand|econnre`},
	{"", ClassInvalid, `invalid.?(?:request|argument|param|value|type)|validation|bad.?request|not.?found|unsupported|should be a valid|should have at most|string too long|array too long|empty array|cannot specify|is illegal|context window too small|not allowed to use|参数`},
})

// whole is behind a number that does not go on.
const whole = `(?:[^\d,._']|[,._'](?:\D|$)|$)`

// bounds find counts in words of no known provider that state an overflow: what is allowed,
// and what was sent, in either order.
var bounds = compile([]rule{
	{"", "", `\b(?:limit|maximum|max|window|length|allowed|supports?|up to|only)(?: [a-z]+){0,4},? \(?{limit}` + whole + `.*?\b(?:resulted in|requested|contain\w*|ha[sd]|have|got|received|sent|given|is|was|were|of|input|prompt|messages) \(?{actual}`},
	{"", "", `\b(?:limit|maximum|max|window|length|up to|only)(?: [a-z]+){0,4},? \(?{limit}` + whole + `.*?\b{actual} (?:[a-z]+ )?tokens?\b`},
	{"", "", `\btokens? (?:[a-z]+ ){0,2}\(?{actual}\)?.*?\b(?:limit|maximum|max|window|length|allowed|allows|supports?|up to|than|only|exceeds?)(?: [a-z]+){0,4},? \(?{limit}`},
	{"", "", `\b(?:prompts?|inputs?|requests?|messages|conversation|context)(?: [a-z]+){0,3},? \(?{actual}(?:\.0)?` + whole + `.*?\b(?:than|exceeds?|limit|maximum|max|only|up to)(?: [a-z]+){0,6},? \(?{limit}`},
	{"", "", `{actual}\)?(?: [a-z]+){0,2} tokens?\b.*?\b(?:limit|maximum|max|window|length|allowed|allows|supports?|up to|than|only|exceeds?)(?: [a-z]+){0,4},? \(?{limit}`},
})

// limits find the limit if nothing else is stated.
var limits = compile([]rule{
	{"", "", `\b(?:limit|maximum|max|window|length|up to|only)(?: (?:of|is|are|for|the|this|input|model|context|number|tokens|length|window|size)){0,4} \(?{limit} (?:input )?tokens\b`},
})

// comparisons find counts in words of no known provider.
var comparisons = compile([]rule{
	{"", "", `\b{actual},* tokens? ?[:>] ?,*{limit}`},
	{"", "", `\b{actual},* ?> ?,*{limit}`},
	{"", "", `\b{actual},* exceeds ,*{limit}`},
	{"", "", `\btokens?\b.*?\({actual} ?/ ?{limit}\)`},
})
