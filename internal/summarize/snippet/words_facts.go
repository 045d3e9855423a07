package snippet

import (
	"regexp"
	"strings"
)

// statement is a form of sentences that state a fact with a word of a rule. Without one of its
// cues a text does not have that form.
type statement struct {
	cues *Phrases
	form *regexp.Regexp
}

func stating(cues, form string) statement {
	return statement{NewPhrases(strings.Split(cues, "|")...), regexp.MustCompile(`(?:^|[^\p{L}])(?:` + form + `)(?:$|[^\p{L}])`)}
}

// statements are those of the languages that users of agents write most.
var statements = []statement{
	stating(`must|has to|have to|must've`,
		`must (?:say|admit|confess)|(?:i|he|she|they|you|we|someone|somebody|something) must(?:'ve| have) (?:been|done|seen|got|gone|taken|made|forgotten|lost|left|broken|\p{L}+ed)|(?:it|that|this) must(?:'ve| have) been|(?:it|that|this) must (?:come from|mean)|`+
			`(?:i|we) must be (?:\p{L}+ing|blind|stupid|wrong|confused)|(?:the|my|our) \p{L}+ must have (?:failed|crashed|died|expired|stopped|timed)|(?:i|we) (?:have to|must) (?:leave|go|run|stop here|catch|admit|say)|`+
			`(?:it|that|this|there|something) (?:must|has to|have to)(?: still| just| simply| really| probably)? be (?:\p{L}+ ){0,4}?(?:race|bug|typo|mistake|misunderstanding|problem|issue|timeout|leak|reason|glitch|outage|down|somewhere|because|way|solution|explanation)|`+
			`(?:it|that|this) (?:must|has to) be the (?:\p{L}+ )?(?:cache|proxy|network|driver|database|db|compiler|vpn|firewall|dns|disk|server|config)|(?:it|there) must be an error (?:in|on|of|somewhere)|(?:server|network|site|vpn|database|proxy|disk) must be (?:down|offline|broken|slow|full)|`+
			`(?:customers?|clients?|boss|manager|he|she|they|you|everyone|people|guys) must be (?:\p{L}+ )?(?:angry|tired|happy|kidding|joking|upset|crazy|annoyed|sick|busy|wrong|new|thrilled|right|proud|bored|mad|exhausted)`),
	stating(`don't|dont|do not|can't|cannot|can not`,
		`(?:i|we) (?:don't|dont|do not|can't|cannot|can not) (?:really |even |quite |actually |also )?(?:know|think|remember|recall|understand|see|find|get|reproduce|believe|mind|care|recognize|open|tell|hear|mean|need more)|`+
			`(?:it|this|that|server|client|app|page|build|job) (?:cannot|can't|can not) (?:connect|open|find|load|reach|see|resolve|start|read|parse)|can't be (?:found|reached|opened|loaded|resolved|reproduced|parsed|right|true|that|it)|`+
			`(?:don't|dont|do not) (?:worry|mind|bother|get me wrong|be sorry|feel|panic|apologi[sz]e|laugh)`),
	stating(`never|always|at least|only|should not|shouldn't`,
		`(?:has|have|had|'ve) (?:never|always)|had only|at least (?:it|this|that|i|we|he|she|they|now|one of)|should(?:n't| not) .*but (?:it|they|this|that) (?:is|does|do|are|did|was)|can only (?:mean|be)|(?:should|will|would) only be|`+
			`only (?:two|three|four|five|one|some|\d+|half) (?:\S+ ){0,4}?(?:fails?|failed|(?:is|are|was|were) (?:red|left|missing|broken|failing))`),
	stating(`immer|nie|nur|muss`,
		`(?:klappt|geht|läuft|kommt|passiert|funktioniert|startet|hängt|scheitert|fehlt|bekomme|kriege|bricht) (?:\p{L}+ )?(?:nur|nie|immer)|nur .*(?:sind|ist) (?:rot|kaputt)|immer (?:der|die|das)selbe|(?:ich|es|das|der fehler|die \p{L}+) (?:\p{L}+ )?(?:tritt|passiert|kommt|war|hat|habe) (?:\p{L}+ )?(?:nur|nie|immer)|`+
			`(?:es|das) muss .*(?:liegen|sein)|ich muss (?:gleich|los|jetzt|weg|bald|sagen|zugeben)|nie (?:wiem|mam|widzę|rozumiem|pamiętam|mogę|chcę|znam|umiem|działa\p{L}*)`),
	stating(`toujours|jamais|doit|dois`,
		`toujours (?:la même|le même|les mêmes)|(?:j'ai|c'est|il est|elle est) toujours|n'(?:a|ai|ont|avait|est) (?:\p{L}+ )?jamais|(?:il|ce|ça) doit (?:y avoir|être)|je (?:dois|ne dois) (?:partir|y aller|dire|avouer)|(?:casse|plante|échoue) toujours`),
	stating(`nunca|siempre|jamás|sólo|solo|debe|deben|sempre|só|deve|mai`,
		`(?:nunca|siempre|jamás|sólo|solo) (?:se )?(?:había|he|ha|han|hemos|falla|fallan|funcion\p{L}+|pasa|pasó|ocurre|sale|da|dice|aparece|está|hay|rompe)|debe de ser|(?:debe|deben) ser (?:\p{L}+ ){0,2}?(?:error|problema|fallo)|`+
			`(?:nunca|sempre|só) (?:funcion\p{L}+|falha|falhou|tinha|vi|aconteceu|dá|sai|aparece|quebra|cai|trava|lo stesso|la stessa|o mesmo|a mesma)|deve (?:ser|essere) (?:\p{L}+ ){0,2}?(?:erro|errore|problema|bug)|(?:ho|ha|hanno|abbiamo|è|sono) (?:mai|sempre|solo)`),
	stating(`altijd|nooit|alleen|aldrig|alltid|aldri|altid`,
		`(?:is|was|heb|heeft|had) (?:het |dit |ik )?(?:altijd|nooit|alleen)|(?:har|hade|havde|er|är|var) (?:\p{L}+ )?(?:aldrig|alltid|aldri|altid)`),
	stating(`nigdy|zawsze|tylko|nikdy|vždy|soha|mindig`,
		`(?:nigdy|zawsze|tylko) (?:nie )?(?:działa\p{L}*|widział\p{L}*|miał\p{L}*|był\p{L}*|jest|ten sam|ta sama)|(?:nikdy|vždy) (?:\p{L}+ )?\p{L}+(?:lo|la|li|al|el)|(?:soha|mindig) (?:nem )?(?:működ\p{L}+|láttam)`),
	stating(`никогда|всегда|только|ніколи|завжди|тільки`,
		`(?:никогда|всегда|только)(?: \p{L}+){0,2}? \p{L}+(?:ло|ла|ли|ал|ел|ил|ял|ает|ется|дает|так)|всегда (?:так|один|одна|одно|то же|та же)|(?:ніколи|завжди|тільки)(?: \p{L}+){0,2}? \p{L}+(?:ло|ла|ли|ав|ив|є)`),
	// "I have only one question."
	stating(`only|just|nur|que|tylko|только|solo|sólo|só|apenas|bara|bare|jen|csak|sadece|maar|alleen`,
		`(?:have|habe|ai|tengo|tenho|ho|heb|mam|меня|har|mám) (?:only|just|nur|que|tylko|только|solo|sólo|só|apenas|bara|bare|jen|maar|alleen) (?:one|an?|eine?|une|jedno|одно|один|una|um|uma|en|ett|et|jednu|één) (?:question|frage|pytanie|вопрос|pregunta|pergunta|domanda|fråga|spørgsmål|spørsmål|otázku|vraag)|csak egy kérdésem|sadece bir sorum|mam tylko|у меня только`),
}

// idioms have a word of a rule and are none.
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
	normWords = Set(`is are am i'm we're you're be been being get gets must should shall may might can could will would to and or but please then not don't you'll we'll we'd may also so that which let's`)
)
