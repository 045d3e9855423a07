package snippet

// Words that mark a rule. They match whole words, without case.
var (
	RuleWords = NewPhrases(
		"always", "at least", "at most", "avoid", "cannot", "do not", "don't", "dont", "ensure", "forbidden", "has to", "have to",
		"keep in mind", "make sure", "may not", "must", "mustn't", "never", "no longer", "not allowed", "only", "remember to",
		"need(s|) to be", "can't be", "should not", "shouldn't", "prohibited",
		"hands off", "fingers off", "hands (out|away)", "off limits", "off-limits", "stay away from", "(is|are) frozen", "stick (to|with)", "refrain from", "rather (you|we|not)", "prefer (not|that you|if you)", "no more than", "no exceptions", "stuck on", "nothing that", "(is|are) not to", "limited to", "at a time", "everything you", "every (file|line|time) you", "whenever you", "whatever (happens|you do)",
		"(there's|there is|there are) to be", "before (every|each|any)", "(tell|call|ping|warn|notify|inform|message) (me|us) (first |)before", "let (me|us) know before", "under no circumstances", "without exception",
		// German, Dutch, Scandinavian languages.
		"niemals", "nie", "immer", "auf keinen fall", "keinesfalls", "(darf|dürfen|darfst) nicht", "muss", "müssen", "musst", "nur", "ausschließlich", "unbedingt", "bitte nicht", "verboten", "stets", "keine", "höchstens", "maximal", "vermeide*", "verzichte*", "ohne ausnahme", "tabu", "finger weg", "finger von", "(bleibt|bleiben) (unverändert|wie)", "(bleib|bleibe|bleibt) bei", "(darf|dürfen) (nichts|niemand|kein*)",
		"nooit", "altijd", "moet", "moeten", "alleen", "uitsluitend", "mag niet", "verboden", "vermijd*", "hooguit", "blijf (van|bij)", "aldrig", "alltid", "måste", "endast", "får inte", "aldri", "altid", "må ikke", "skal", "undvik*", "undgå*", "unngå*", "høyst", "højst", "högst",
		// Romance languages.
		"jamais", "toujours", "doit", "doivent", "il faut", "interdit", "uniquement", "seulement", "évit(e|ez|er)", "préfèr*", "privilégi*", "au (maximum|plus)", "nunca", "siempre", "jamás", "debe", "deben", "debes", "dois", "devez", "prohibido", "solo", "sólo", "solamente", "hay que", "evit(a|e|ar|ate|ă|ați)", "como máximo", "prefier*",
		"sempre", "deve", "devem", "proibido", "somente", "apenas", "no máximo", "prefir*", "mai", "non deve", "devono", "vietato", "soltanto", "bisogna", "al massimo", "preferisc*", "niciodată", "întotdeauna", "mereu", "trebuie", "numai", "cel mult", "interdiction", "on reste", "on n'utilise", "pas plus de", "(garde|gardez) la compat*", "no más de", "(mantén|mantenga|mantenha|mantieni)", "défense de", "que no se", "interzis*",
		// Slavic and Baltic languages.
		"nigdy", "zawsze", "musi", "muszą", "tylko", "nie wolno", "unikaj*", "maksymalnie", "nikdy", "vždy", "musí", "pouze", "nesmí", "vyhni", "vyhýbej*", "vyhýbaj*", "maximálně", "никогда", "всегда", "нельзя", "должен", "должна", "должно", "должны", "только", "запрещено", "обязательно", "избегай*", "максимум", "оставь*", "не (более|больше)",
		"ніколи", "завжди", "не можна", "повинен", "повинна", "тільки", "лише", "уникай*", "никога", "винаги", "избягвай*", "увек", "никад", "никада", "uvijek", "uvek", "nikad", "nikada", "vedno", "nikoli", "visada", "niekada", "vienmēr", "nekad", "niekad", "izbjegavaj*", "izbegavaj*", "izogibaj*", "venk*", "izvairies", "zabrania*", "zabronion*", "zakaz*", "запрещ*", "заборон*", "забран*", "zabranjen*", "zakázán*", "prepovedan*",
		// Turkish, Hungarian, Finnish, Estonian, Greek.
		"asla", "her zaman", "daima", "sadece", "yalnızca", "zorunlu", "yasak", "kaçın*", "en fazla", "soha", "mindig", "csak", "tilos", "kerüld*", "legfeljebb", "älä", "älkää", "aina", "koskaan", "täytyy", "vältä*", "enintään", "kysymättä", "alati", "kunagi", "ποτέ", "πάντα", "πρέπει", "μόνο", "απόφυγε*", "απόφευγε*", "απαγορεύ*", "kielletty*", "förbjud*", "forbudt", "forbud",
		// Languages of Asia and Africa.
		"不要", "不得", "禁止", "必须", "务必", "永远", "绝不", "切勿", "勿", "只能", "总是", "始终", "一律", "避免", "不准", "不许", "不超过", "必須", "務必", "永遠", "絕不", "總是", "保持", "ないでください", "しないで", "絶対", "必ず", "てはいけ", "てはなら", "常に", "避けて", "のみ。",
		"절대", "반드시", "항상", "금지", "마세요", "(지|하지) 마", "지 말", "그대로 (둬|두)", "피해", "أبدا", "دائما", "يجب", "ممنوع", "فقط", "لا ت", "تجنب", "לעולם", "תמיד", "אסור", "חייב", "הימנע*", "कभी नहीं", "मत", "हमेशा", "केवल", "न करें", "jangan", "selalu", "harus", "hanya", "dilarang", "hindari*",
		"không bao giờ", "luôn", "phải", "không được", "đừng", "tránh", "ห้าม", "เสมอ", "ต้อง", "อย่า", "หลีกเลี่ยง", "huwag", "palagi", "kamwe", "daima", "همیشه", "هرگز", "فقط", "সবসময়", "সর্বদা", "কখনো", "কখনও", "எப்போதும்",
	)
	// ChoiceWords are those of users who decide something, or change what was decided.
	ChoiceWords = NewPhrases(
		"decided", "decision", "final answer", "from now on", "go with", "going with", "instead", "let's not", "new plan", "off the table",
		"rather than", "switch to", "the plan is", "we're going to", "we are going to",
	)
)

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
