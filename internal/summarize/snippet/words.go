package snippet

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words that mark a rule. They match whole words, without case.
var (
	RuleWords = NewPhrases(
		"always", "at least", "at most", "avoid", "cannot", "do not", "don't", "dont", "ensure", "forbidden", "has to", "have to",
		"keep in mind", "make sure", "may not", "must", "mustn't", "never", "no longer", "not allowed", "only", "remember to",
		"should not", "shouldn't", "under no circumstances", "without exception",
		// German, Dutch, Scandinavian languages.
		"niemals", "nie", "immer", "auf keinen fall", "keinesfalls", "darf nicht", "dürfen nicht", "darfst nicht", "muss", "müssen", "musst", "nur", "ausschließlich", "unbedingt", "bitte nicht", "verboten", "stets", "keine",
		"nooit", "altijd", "moet", "moeten", "alleen", "mag niet", "verboden", "aldrig", "alltid", "måste", "endast", "får inte", "aldri", "altid", "må ikke", "skal",
		// Romance languages.
		"jamais", "toujours", "doit", "doivent", "il faut", "interdit", "uniquement", "seulement", "nunca", "siempre", "jamás", "debe", "deben", "debes", "dois", "devez", "prohibido", "solo", "sólo", "solamente", "hay que",
		"sempre", "deve", "devem", "proibido", "somente", "apenas", "mai", "non deve", "devono", "vietato", "soltanto", "bisogna", "niciodată", "întotdeauna", "trebuie", "numai",
		// Slavic languages, Turkish, Hungarian, Finnish, Greek.
		"nigdy", "zawsze", "musi", "muszą", "tylko", "nie wolno", "nikdy", "vždy", "musí", "pouze", "nesmí", "никогда", "всегда", "нельзя", "должен", "должна", "должно", "должны", "только", "запрещено", "обязательно",
		"ніколи", "завжди", "не можна", "повинен", "повинна", "тільки", "лише", "asla", "her zaman", "daima", "sadece", "yalnızca", "zorunlu", "yasak", "soha", "mindig", "csak", "tilos", "älä", "aina", "koskaan", "täytyy", "ποτέ", "πάντα", "πρέπει", "μόνο",
		// Languages of Asia and Africa.
		"不要", "不得", "禁止", "必须", "务必", "永远", "绝不", "切勿", "只能", "总是", "始终", "不准", "必須", "務必", "永遠", "絕不", "總是", "ないでください", "しないで", "絶対", "必ず", "てはいけ", "てはなら", "常に",
		"절대", "반드시", "항상", "금지", "마세요", "하지 마", "أبدا", "دائما", "يجب", "ممنوع", "فقط", "لا ت", "לעולם", "תמיד", "אסור", "חייב", "कभी नहीं", "मत", "हमेशा", "केवल", "jangan", "selalu", "harus", "hanya", "dilarang",
		"không bao giờ", "luôn", "phải", "không được", "ห้าม", "เสมอ", "ต้อง", "kamwe", "daima",
	)
	// ChoiceWords are those of users who decide something, or change what was decided.
	ChoiceWords = NewPhrases(
		"decided", "decision", "final answer", "from now on", "go with", "going with", "instead", "let's not", "new plan", "off the table",
		"rather than", "switch to", "the plan is", "we're going to", "we are going to",
	)
)

// IsRule reports a sentence of a user that is a rule: it has a word of one, or bans a thing.
func IsRule(sentence string) bool {
	lower := Lowered(sentence)
	return Matches(lower, RuleWords) || Matches(lower, ChoiceWords) || bans(lower)
}

// ban is the head of a sentence that bans a thing by name: "And no force pushes, please."
var ban = regexp.MustCompile(`^[\s\p{P}]*(?:(?:and|but|also|so|then|please|absolutely|again|oh|ok|und|auch|bitte|et|aussi|y|e|en)[ ,]+){0,2}` +
	`(?:no|nobody|no one|nothing|none|zero|not (?:a single|one|any)|keine[nrsm]?|kein|niemand|nichts|pas de?|aucune?|plus de|nada de|ning[uú]na?|ningún|nenhuma?|nessuna?|niente|geen|ing(?:a|en|et)|никаких|никакого|żadn(?:ych|ego)|žádn[éá])(?:\s|')\S`)

// states is what tells a fact that begins like a ban: a person or a time in it, a verb of a
// fact, or a thing that nobody bans.
var states = regexp.MustCompile(`(?:^|[^\p{L}])(?:i|i'm|i've|it|it's|he|she|they|there|is|isn't|are|was|were|has|had|did|does|works?|worked|happen(?:s|ed)|failed|passed|changed|helps|helped|found|left|so far|yet|this time|today|now|any ?more|` +
	`idea|problem|problems|luck|worries|clue|doubt|wonder|need|reason|rush|hurry|thanks|matter|change|changes|difference|response|reply|answer|news|` +
	`ich|es|ist|sind|war|waren|hat|hatte|ahnung|problème|idée|est|sont|hay|es|son|funciona|idea)(?:$|[^\p{L}])`)

// bans reports a sentence that has a ban for its head and states no fact.
func bans(lower string) bool { return ban.MatchString(lower) && !states.MatchString(lower) }

// Words that mark a sentence of an assistant. They match whole words, without case.
var (
	DecisionWords = NewPhrases(
		"chose", "chosen", "decided", "decision", "going with", "i will use", "i'll use", "instead of", "let's go with", "let's use",
		"opted", "rather than", "settled on", "switched to", "switching to", "the plan is", "we will use", "we'll use", "will go with",
	)
	DiscoveryWords = NewPhrases(
		"because", "discovered", "due to", "explains why", "found out", "found that", "found the", "i see that", "it seems that",
		"note that", "root cause", "the bug is", "the cause is", "the issue is", "the problem is", "the reason", "this means",
		"turned out", "turns out",
	)
)

// Phrases are words to look for, by their first byte.
type Phrases [256][]phrase

type phrase struct {
	word     string
	stem     bool // it may go on
	unspaced bool // it may stand within letters
}

// NewPhrases returns words, in small letters, to look for with [Matches] and [Find]. One that
// ends in "*" is the beginning of a word. "(a|b) c" stands for "a c" and "b c", and "(a|)" may
// be left out.
func NewPhrases(all ...string) *Phrases {
	var p Phrases
	for _, pattern := range all {
		for _, w := range expanded(pattern) {
			w, stem := strings.CutSuffix(strings.TrimSpace(w), "*")
			p[w[0]] = append(p[w[0]], phrase{w, stem, unspaced(w)})
		}
	}
	return &p
}

// expanded lists the words that a pattern stands for.
func expanded(pattern string) []string {
	from := strings.IndexByte(pattern, '(')
	if from < 0 {
		return []string{pattern}
	}
	to := from + strings.IndexByte(pattern[from:], ')')
	var out []string
	for choice := range strings.SplitSeq(pattern[from+1:to], "|") {
		out = append(out, expanded(strings.ReplaceAll(pattern[:from]+choice+pattern[to+1:], "  ", " "))...)
	}
	return out
}

// Matches reports whether lower, a text without capitals, holds one of words.
func Matches(lower string, words *Phrases) bool {
	from, _ := Find(lower, words)
	return from >= 0
}

// Find returns where the first of words stands in lower, a text without capitals: -1 for
// nowhere. Of two that begin there it is the longer.
func Find(lower string, words *Phrases) (from, to int) {
	for i := range len(lower) {
		to = -1
		for _, w := range words[lower[i]] {
			end := i + len(w.word)
			if end > to && strings.HasPrefix(lower[i:], w.word) && (w.unspaced || !letterBefore(lower[:i]) && (w.stem || !LetterAfter(lower[end:]))) {
				to = end
			}
		}
		if to >= 0 {
			return i, to
		}
	}
	return -1, -1
}

// Each lists where words stand in lower, a text without capitals.
func Each(lower string, words *Phrases) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for at := 0; at < len(lower); {
			from, to := Find(lower[at:], words)
			if from < 0 || !yield(at+from, at+to) {
				return
			}
			at += to
		}
	}
}

// Set returns the words of a list.
func Set(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// Unspaced reports a letter of a script without spaces between words, or with particles joined
// to them.
func Unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// unspaced reports a word that may stand within letters.
func unspaced(w string) bool { return w == "لا ت" || strings.ContainsFunc(w, Unspaced) }

func letterBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// LetterAfter reports whether s begins with a letter, a digit or an underscore.
func LetterAfter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// Lowered is a text as words are looked for in it.
func Lowered(s string) string { return strings.ToLower(strings.ReplaceAll(s, "’", "'")) }
