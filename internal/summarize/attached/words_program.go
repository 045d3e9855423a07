package attached

import (
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// programWords are in each sentence that [program] finds.
var programWords = snippet.NewPhrases("user", "user's", "conversation", "session", "context", "response*", "your (edit|task|todo|message|last|previous|latest|output|turn)", "maximum number", "limit", "budget", "tool", "tools", "automated", "task resumption", "mode", "you did not", "assistant", "automatically", "human", "interaction", "llm", "model", "linter",
	"agent", "subagent", "system reminder", "from the system", "on disk", "above files", "has not been read", "timed out", "background", "search", "reflections", "loop",
	"action", "actions", "iterations", "in a row", "backticks", "formatted", "terminate", "scheduled", "title", "handoff", "checkpoint", "final",
	"nobody", "no one", "unattended", "attempt", "attempts", "steps", "turns", "tokens", "remaining", "this (message|reminder|notice|instruction|prompt)", "goal", "so far", "sandbox", "hook", "harness", "your previous", "your last", "messages", "todo")

// program finds sentences that programs write in the role of the user: about the user as
// another person, or about the agent's calls, answers, steps and conversation.
var program = lazyregexp.New(`(?:^|[^\p{L}])(?:` +
	`user (?:has )?(?:approved|rejected|denied|declined|accepted|confirmed|cancelled|canceled|interrupted) (?:your|this|the) (?:plan|tool|edit|changes?|call|command|proposal|operation|action|permission|question|request)|` +
	`the user (?:has )?(?:\p{L}+ed|left|chosen|chose|sent) (?:\S+ ){0,4}?(?:session|\p{L}+ mode|tool|plan|your \p{L}+|conversation|permission)|(?:cancelled|canceled|interrupted|declined|skipped|stopped|rejected|denied|blocked|aborted) (?:by|because) the user|` +
	`(?:your context|(?:this|your) turn|your tool calls?|your (?:todo|task) list) (?:was|were|is|has|had|have|will)|this (?:session|conversation) (?:was|has been|is being) \p{L}+ed|without (?:a |any )?tool calls?|the tool (?:returned|failed)|of the last (?:command|tool)|last command (?:was|timed)|(?:not|never) wait for (?:the user|input)|the user (?:aborted|stopped|interrupted) the|auto-?compact|` +
	`user (?:doesn't|does not|did not|didn't) want (?:you )?to (?:proceed|run|take|continue|use)|the user (?:has )?(?:opened|selected) .{1,120} in the ide|the user selected (?:the )?lines? |` +
	`by the user or by a linter|asking the user (?:any )?(?:further|for clarification|follow-?up|questions)|ask the user (?:how|whether) to (?:continue|proceed)|wait for the user(?:'s (?:instructions|input)| to (?:tell|instruct) you)|` +
	`tell the user this|(?:you|your) [^.!?\n]*(?:unless|until) the user (?:explicitly )?(?:asks|requests|instructs|tells|says|accepts|approves the)|unless the user (?:explicitly )?(?:asks|tells|instructs) you|until the plan is (?:confirmed|approved|accepted)|ask(?:ing)? for human|ask the operator|` +
	`(?:this|the) (?:session|conversation)(?: history)? (?:is being continued|continues from|has been (?:compacted|condensed|summari[sz]ed)|is getting (?:too )?long|has become too|is too long|was compacted)|(?:summary of|summari[sz]e|compact|condense|title for) (?:the|this|our) conversation|continue the conversation from where|` +
	`(?:ran|run|running) out of context|context (?:window )?(?:is (?:almost |nearly )?(?:full|exhausted)|ran out)|exceed(?:s|ed) the (?:context|output)|` +
	`your (?:(?:previous|last|latest) )?(?:response|message|answer|output|reply|edit|turn|tool call) (?:was (?:truncated|interrupted|rejected|empty|blocked|cut off (?:because|as))|(?:did not|didn't|does not) (?:match|conform|contain|include|call|use a tool)|contain(?:s|ed) (?:no|an invalid)|exceeded|could not be (?:parsed|applied|processed)|failed to parse|has no tool)|` +
	`your (?:(?:previous|last) )?task was interrupted|task resumption|content of your last response|who should speak next|` +
	`(?:reach|exceed|hit|us)(?:ed|es) (?:\S+ ){0,5}?(?:number of (?:steps|turns|iterations|output tokens|tokens|tool calls)|limit of \d+ (?:steps|turns|iterations|tool calls)|output limit|token budget|step limit|turn limit)|` +
	`no tool was used|this tool (?:call|use)|tool (?:call|execution|use)s? (?:was|were) \p{L}+|one tool call (?:is|per)|the following tool calls|you (?:now )?have (?:only )?\S+ (?:turns|steps|iterations|tool calls|messages) (?:left|remaining)|you are (?:now )?in [\p{L}-]+ mode|(?:the|your) previous agent|agent instance|the assistant (?:must|should|has|will)|you did not call|generated automatically|(?:answer|output|response) was not accepted|` +
	`call(?:ing)? (?:any (?:more |further )?|exactly one |at least one |another )tools?|call a tool in every|tool (?:use|call)s? (?:was|were|is|are) (?:rejected|denied|blocked|disabled)|tools are (?:now )?disabled|permission for this tool|blocked this tool call|in your tool calls|assume that (?:a )?tools? succeeded|use the read tool|with the read tool|` +
	`[\p{L}-]+ mode is (?:active|on|enabled)|this is an automated|\(?(?:this is an )?automated (?:message|reminder)\.?\)|an automated reminder|reminder from the system|system reminder|file (?:was )?changed on disk|your task is to (?:create|write|produce) a (?:detailed )?summary|another (?:language model|agent) (?:started|whose)|taking over from another agent|so that another agent|` +
	`the llm did not|reflections allowed|has not been read yet|timed out after \d|background (?:command|task|process|job) .{1,60}(?:completed|finished|exited|failed)|subagent (?:has )?(?:finished|returned|report)|your (?:todo|task) list (?:still|has \d|is empty)|incomplete todos|` +
	`the model (?:returned|produced) an? (?:empty|invalid)|potential loop|(?:search|replace) (?:block|section) must|don't consider the above files|finish the interaction|linter found errors after your` +
	`)(?:$|[^\p{L}])`)

// machine finds lines in the format of a program, without a first person: what the reader did, how its
// output has to look, how much is left, and who reads next.
var machine = lazyregexp.New(`(?:^|[^\p{L}])(?:` +
	`you (?:have )?(?:called|used|repeated|made) .{1,60} (?:in a row|consecutive(?:ly)?)|your (?:\p{L}+ )?(?:output|response|reply|answer|message) (?:was|is) (?:malformed|invalid|(?:not|in)(?:correctly| properly| correctly)? (?:formatted|valid|parsed)|not formatted)|` +
	`exactly (?:one|1) (?:action|command|code block|bash block|tool call|thought)|found \d+ actions?|one (?:discussion|thought) and one (?:command|action|observation)|in triple backticks|` +
	`(?:maximum|max)(?: allowed)? (?:number of )?(?:iterations|steps|turns|tool calls|retries) (?:was |were |has been |have been )?(?:reached|exceeded|used)[.!;:,]|(?:step|turn|iteration|token|time) (?:limit|budget) (?:was |is |has been )?(?:reached|exceeded|exhausted|used up)[.!;:,]|you must now (?:give|provide|produce|write|return) (?:the|your|a) final (?:answer|output|response)|` +
	`(?:handoff|hand-off) summary|context checkpoint|checkpoint compaction|another (?:llm|model|agent|assistant) (?:that|who|which) (?:will|can|is going to) (?:resume|continue|take)|(?:title|summary|name) for this (?:chat|conversation|session|thread)|reply terminate|(?:completion|finish|submit|final answer|exit) tool|` +
	`(?:running|operating|working) (?:in|under) (?:an? )?(?:\p{L}+[ ,-]+){1,3}mode|(?:running|executed|started) (?:as|in) an? (?:unattended|non-interactive|automated|background|scheduled) |(?:nobody|no one|no (?:human|user|operator)) (?:is|will be) (?:available|present|there|watching|around|able)|` +
	`(?:\d+|no|few|two|three) (?:more )?(?:steps|turns|iterations|tokens|attempts|tool calls|messages|retries|requests) (?:are )?(?:left|remain(?:ing)?)|you (?:have )?used \d+|\d+ ?% of (?:your|the) (?:context|budget|tokens|limit)|(?:reached|hit|exceeded) (?:the|its|your) (?:\p{L}+ ){0,3}(?:limit|budget|quota|maximum|cap)|` +
	`you (?:have not|haven't|did not|didn't) (?:yet )?(?:use|call|provide|produce|include|return|complete|update|mark|finish)(?:d|ed)? (?:an?|any|the|your|all) (?:\p{L}+ )?(?:tools?|todos?|todo list|plan|response|answer|action|summary|block|items)|` +
	`the next (?:model|assistant) instance|(?:acknowledge|mention|reveal|respond to|reply to|repeat) this (?:message|reminder|notice|instruction|prompt|checkpoint)|(?:active|current|assigned) (?:thread|session) goal|working towards? the (?:\p{L}+ ){1,3}goal|(?:conversation|session|chat|work) so far|(?:sandbox|hook|harness|guardrail|orchestrator|runtime) (?:has )?(?:rejected|blocked|denied|stopped|refused|reported|returned|feedback)|` +
	`(?:this is a|started by a) scheduled (?:run|job|task|execution)` +
	`)(?:$|[^\p{L}])`)

// scheduled begins the message of a timer.
var scheduled = lazyregexp.New(`^scheduled (?:run|job|task|execution)`)

// firstPerson is a word of who writes.
var firstPerson = lazyregexp.New(`(?:^|[^\p{L}])(?:i|i'm|i'd|i've|i'll|me|my|mine|we|we're|we've|us|our|let's)(?:$|[^\p{L}])`)

// reported is a state of the user, in a message that addresses the agent: its author is neither.
var (
	reported  = lazyregexp.New(`^(?:the )?user (?:is|was|has|\p{L}+ed|sent|left|chose|wants|did|didn't|doesn't) `)
	addressed = lazyregexp.New(`(?:^|[^\p{L}])(?:you|your)(?:$|[^\p{L}])`)
)
