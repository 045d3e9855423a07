package snippet

import (
	"regexp"
	"strings"

	"compactd/internal/lazyregexp"
)

// statement is a form of sentences that state a fact with a word of a rule. Without one of its
// cues a text does not have that form.
type statement struct {
	cues *Phrases
	form func() *regexp.Regexp
}

func stating(cues, form string) statement {
	return statement{NewPhrases(strings.Split(cues, "|")...), lazyregexp.New(`(?:^|[^\p{L}])(?:` + form + `)(?:$|[^\p{L}])`)}
}

// statements are those of the languages that users of agents write most.
var statements = []statement{
	stating(`must|has to|have to|must've`,
		`must (?:say|admit|confess)|(?:i|he|she|they|you|we|someone|somebody|something) must(?:'ve| have) (?:been|done|seen|got|gone|taken|made|forgotten|lost|left|broken|missed|overlooked|misread|deleted|changed|confused)|(?:it|that|this) must(?:'ve| have) been|(?:it|that|this) must mean|`+
			`(?:i|we) must be (?:\p{L}+ing|blind|stupid|wrong|confused)|(?:the|my|our) \p{L}+ must have (?:failed|crashed|died|expired|stopped|timed)|i (?:have to|must) (?:leave|go|run|stop here|catch|admit|say)|`+
			`(?:it|that|this|there|something) (?:must|has to|have to)(?: still| just| simply| really| probably)? be (?:(?:an?|the|some) (?:\p{L}+ ){0,3}?(?:race|bug|typo|mistake|misunderstanding|glitch|problem|issue)|an (?:error|issue) (?:in|on|somewhere)|a timeout somewhere|an? (?:easier|better|simpler|other) way|some (?:way|reason)|somewhere|because)|`+
			`(?:it|that|this) (?:must|has to) be the (?:\p{L}+ )?(?:cache|proxy|network|driver|database|db|compiler|vpn|firewall|dns|disk|server|config)[.!]*$|(?:server|network|site|vpn|database|proxy|disk) must be (?:down|offline|broken|slow|full)(?: again| today| now)?[.!]*$|`+
			`(?:customers?|clients?|boss|manager|he|she|they|you|everyone|people|guys) must be (?:\p{L}+ )?(?:angry|tired|happy|kidding|joking|upset|crazy|annoyed|sick|busy|wrong|thrilled|right|proud|bored|mad|exhausted)`),
	stating(`don't|dont|do not|can't|cannot|can not`,
		`(?:i|we) (?:don't|dont|do not) (?:really |even |quite |actually |also )?(?:know|think|remember|recall|understand|see|believe|mind|care|recognize|mean|need more)|(?:i|we) (?:can't|cannot|can not) (?:really |even |quite |actually |also )?(?:see|find|get|reproduce|open|tell|hear|remember|recall|understand|think|believe)|`+
			`(?:it|this|that) (?:cannot|can't|can not) (?:connect|find|load|start)|can't be (?:found|reached|opened|loaded|resolved|reproduced|parsed|right|true|that|it)|`+
			`(?:don't|dont|do not) (?:worry|mind|get me wrong|be sorry|feel|panic|apologi[sz]e|laugh)`),
	stating(`never|always|at least|only|should not|shouldn't`,
		`(?:has|have|had|(?:i|we|you|they)'ve) (?:never|always)|(?:has|have|had|(?:i|we|you|they)'ve) only (?:been|seen|had|got|made|found|done|used|tried)|had only|at least (?:it|this|that|i|we|he|she|they|now)|should(?:n't| not) .*but (?:it|they|this|that) (?:is|does|do|are|did|was)|can only mean|(?:i|we) (?:should|will|would) only be|`+
			`only (?:two|three|four|five|one|some|\d+|half) (?:\S+ ){0,4}?(?:fails?|failed|(?:is|are|was|were) (?:red|left|missing|broken|failing))|(?:i|we|you|it|there|she|he|they) (?:\p{L}+ )?only (?:half|one|two|three)`),
	stating(`immer|nie|nur|muss`,
		`(?:klappt|passiert|funktioniert|hängt|scheitert|fehlt|bekomme|kriege|bricht) (?:\p{L}+ )?(?:nur|nie|immer)|nur .*(?:sind|ist) (?:rot|kaputt)|immer (?:der|die|das)selbe|(?:ich|es|das|der fehler|die \p{L}+) (?:\p{L}+ )?(?:tritt|passiert|war|hat|habe) (?:\p{L}+ )?(?:nur|nie|immer)|`+
			`(?:es|das) muss .*(?:am|an|an der|an dem) .*liegen|(?:es|das) muss eine? (?:\p{L}+ )?(?:tippfehler|fehler|bug|problem|versehen) sein|ich muss (?:gleich|los|jetzt|weg|bald|sagen|zugeben)|nie (?:wiem|mam|widzę|rozumiem|pamiętam|mogę|chcę|znam|umiem|działa\p{L}*)`),
	stating(`toujours|jamais|doit|dois`,
		`toujours (?:la même|le même|les mêmes)|(?:j'ai|c'est|il est|elle est) toujours|n'(?:a|ai|ont|avait) (?:\p{L}+ )?jamais|(?:il|ce|ça) doit (?:y avoir|être) une? (?:\p{L}+ )?(?:faute|bug|problème|coquille)|je (?:dois|ne dois) (?:partir|y aller|dire|avouer)|(?:casse|plante|échoue) toujours`),
	stating(`nunca|siempre|jamás|sólo|solo|debe|deben|sempre|só|deve|mai`,
		`(?:nunca|siempre|jamás|sólo|solo) (?:se )?(?:había|he|ha|han|hemos|falla|fallan|funcion\p{L}+|pasa|pasó|ocurre|sale|da|dice|aparece|rompe)|debe de ser|(?:debe|deben) ser (?:\p{L}+ ){0,2}?(?:error|problema|fallo)|`+
			`(?:nunca|sempre|só) (?:funcion\p{L}+|falha|falhou|tinha|vi|aconteceu|dá|sai|aparece|quebra|cai|trava|lo stesso|la stessa|o mesmo|a mesma)|deve (?:ser|essere) (?:\p{L}+ ){0,2}?(?:erro|errore|problema|bug)|(?:ho|ha|hanno|abbiamo) (?:mai|sempre|solo)`),
	stating(`altijd|nooit|alleen|aldrig|alltid|aldri|altid`,
		`(?:is altijd al|(?:was|heb|heeft|had) (?:het |dit |ik )?(?:altijd|nooit|alleen))|is het altijd al|het is altijd|(?:har|hade|havde|var) (?:\p{L}+ )?(?:aldrig|alltid|aldri|altid)`),
	stating(`nigdy|zawsze|tylko|nikdy|vždy|soha|mindig`,
		`(?:nigdy|zawsze|tylko) (?:nie )?(?:działa\p{L}*|widział\p{L}*|miał\p{L}*|był\p{L}*|jest ten|jest ta|ten sam|ta sama)|(?:nikdy|vždy) (?:(?:to|se|jsem|jsme) )?\p{L}{3,}(?:lo|la|li|al|el)|(?:soha|mindig) (?:nem )?(?:működ\p{L}+|láttam)`),
	stating(`никогда|всегда|ніколи|завжди`,
		`(?:никогда|всегда|ніколи|завжди) (?:(?:такого|этого|ещё|раньше|цього) )?(?:не )?(?:\p{L}{2,}(?:ло|ла|али|ели|или|яли|ал|ел|ил|ял|ав|ив)|падает|ломается|зависает|падає|так|один|одна|одно|то же|та же)`),
	// "I have only one question."
	stating(`only|just|nur|que|tylko|только|solo|sólo|só|apenas|bara|bare|jen|csak|sadece|maar|alleen`,
		`(?:have|habe|ai|tengo|tenho|ho|heb|mam|меня|har|mám) (?:only|just|nur|que|tylko|только|solo|sólo|só|apenas|bara|bare|jen|maar|alleen) (?:one|an?|eine?|une|jedno|одно|один|una|um|uma|en|ett|et|jednu|één) (?:question|frage|pytanie|вопрос|pregunta|pergunta|domanda|fråga|spørgsmål|spørsmål|otázku|vraag)|csak egy kérdésem|sadece bir sorum|mam tylko|у меня только`),
}

// idioms have a word of a rule and state no rule.
var idioms = strings.NewReplacer(slashed("never mind/nevermind/immer noch/schon immer/noch immer/noch nie/toujours pas/toujours aussi/دائما يفشل/دائما يحدث/" +
	"为什么/從來沒/从来没/从没/总是报错/总是失败/总是出错/总是崩溃/总是这样/总是同样/总是一样/總是報錯/總是失敗/必ず失敗/必ずエラー/常にエラー/絶対に失敗/必ず落ち/항상 에러/항상 실패/항상 오류/항상 같은/절대 안 돼")...)

// slashed pairs each of a list with a space.
func slashed(list string) (out []string) {
	for s := range strings.SplitSeq(list, "/") {
		out = append(out, s, " ")
	}
	return out
}

// happened is an adverb of a rule beside a verb that states a fact, with the word before it:
// "I have never seen". Behind one of normWords the verb is a rule's: "are never logged"; so is
// one of wishWords: "I only want".
var (
	happened = stating(`never|always|only|no longer`, `[\p{L}']+ (?:just |almost |nearly )?(?:never|always|only|no longer) (?:ever )?(?:`+
		`been|seen|had|got|told|went|did|was|were|knew|saw|made|found|took|came|ran|broke|thought|gave|left|kept|said|wrote|have|has|half|one|two|three|\p{L}{2,}[a-df-z]ed|`+
		`fails?|crash(?:es)?|hangs?|breaks?|happens?|occurs?|complains?|works|forgets?|freezes?|loads|shows|says|gets|pass|passes|runs?|know|see)|i (?:always|never|only) \p{L}+`)
	wishWords = Set(`want need expect accept allow prefer like wish ask trust`)
	// failing verbs state a fact behind any subject; others do where subjects are before the adverb
	// or begin a sentence without one of modals: "use only signed commits" is a rule.
	failing   = Set(`fail fails crash crashes hang hangs break breaks happen happens occur occurs complain complains works forget forgets freeze freezes`)
	subjects  = Set(`i we you he she it this that they there who had was were did the my our your his her their its a an these those some both`)
	modals    = NewPhrases("should", "must", "shall", "may", "can", "will", "would", "to", "has to", "needs to")
	normWords = Set(`the a an my our your is are am i'm we're you're be been being get gets must should shall may might can could will would to and or but please then not don't you'll we'll we'd may also so that which let's`)
)
