package attached

import (
	"compactd/internal/lazyregexp"
)

// self is the user, or a likeness: "as Bob said".
var self = lazyregexp.New(`(?:^|[^\p{L}])(?:i|we|ich|wir|as|like|wie|comme|como|come|как|je|nous|yo|eu|io|ik|ja|я|jag|jeg)(?:$|[^\p{L}])`)

// textWords are nouns for a text in a question about it.
const textWords = `texts?|sentences?|phrases?|prompts?|paragraphs?|messages?|e?mails?|letters?|poems?|quotes?|words?|tweets?|posts?|drafts?|lines?|wording`

// Lines that point to the text below them, alone in the first paragraph: requests to edit or
// judge it, and its source.
var (
	told = lazyregexp.New(`(?:^|[^\p{L}])(?:` +
		`(?:sent|wrote|said|told|replied|answered|responded|posted|shared|forwarded|emailed|mailed|messaged|texted|sends|writes|says)(?: (?:me|us))?(?: (?:this|that|it|here))?(?: (?:to me|to us|today|yesterday|just now|earlier|this morning|in the \p{L}+|on \p{L}+|by mail))*(?:, (?:any )?(?:thoughts|opinions?|comments|wdyt|what do you think))?|` +
		`(?:geschrieben|geschickt|gesendet|weitergeleitet|gesagt|gepostet|schreibt|sagt|meint|schrieb|sagte)(?: hat)?|(?:a écrit|a dit|a envoyé|m'a écrit|m'a envoyé|m'a dit)(?: (?:ça|ceci))?|` +
		`(?:escribió|dijo|mandaron|mandó|envió|enviaron|escribieron|dice)(?: esto)?(?: (?:el|la|mi) \p{L}+)?|(?:disse|escreveu|mandou|enviou|mandaram|enviaram|diz)(?: (?:isso|isto))?|(?:ha|hanno|mi ha) (?:scritto|detto|mandato|inviato)(?: questo)?|` +
		`(?:stuurde|schreef|zei|zegt)(?: \p{L}+){0,2}|(?:napisa|przysła|powiedzia)(?:ł|ła|li)(?: to| mi)*|(?:прислал|написал|сказал|отправил|прислав|написав|сказав|надіслав)(?:а|и|о)?|napsala?|poslala?|(?:gönderdi|yazdı|dedi)|(?:skickade|skrev|sa)(?: (?:detta|det här))?|(?:skrev|sendte|sagde|sa) (?:dette|det)` +
		`)$`)
	// ordered is a request to work on the text behind its colon or question mark.
	ordered = lazyregexp.New(`^(?:(?:please|pls|bitte|now|can you|could you|kannst du|请|帮我|请帮我|por favor|пожалуйста),? ?)*(?:` +
		`(?:translate|proofread|paraphrase|rephrase|reword|summari[sz]e|shorten|transcribe|simplify|rewrite|polish|spell-?check)(?: (?:this|that|it|these|my \p{L}+|the (?:following|` + textWords + `)))?(?: (?:in|into|to|as) [\p{L}\d -]{1,30})?(?: please| for me)?|` +
		`(?:fix|correct|check|find|spot)(?: the| my| any| all)? (?:typos?|grammar|spelling|punctuation|wording|mistakes)|tl;?dr|what(?:'s| is) wrong (?:with|in) (?:this|that|the|my) (?:` + textWords + `)|what does (?:this|that|the|it)(?: (?:` + textWords + `))? mean|(?:is|are) (?:this|that|these|it)(?: (?:` + textWords + `))? (?:grammatical|idiomatic|polite|(?:good|proper|correct) \p{L}+|spelled \p{L}+)|` +
		`(?:übersetze?|kürze|formuliere|fasse|traduis|traduisez|résume|reformule|raccourcis|traduce|resume|reformula|acorta|traduza|resuma|reformule|traduci|riassumi|riformula|vertaal|herschrijf|przetłumacz|streść|przeredaguj|přelož|přeformuluj|shrň|preved[iť]|переведи(?:те)?|перефразируй|переформулируй|переклади|перефразуй|översätt|oversæt|oversett|käännä|fordítsd|tradu|rezumă|μετάφρασε|ترجم|لخص|תרגם|terjemahkan|ringkas|dịch|tóm tắt|अनुवाद)(?: [\p{L}\p{M}'’ -]{1,30})?|` +
		`[\p{L} ]{1,30} (?:çevir|özetle)|(?:was (?:bedeutet|heißt)|que (?:signifie|veut dire)|¿?qué significa|o que significa|cosa significa|wat betekent|co (?:znaczy|znamená)|что (?:значит|означает)|що означає|va?d betyder|hvad betyder|hva betyr|ce înseamnă) \p{L}+ (?:satz|text|wort|phrase|texte|mot|frase|texto|palabra|testo|parola|zin|tekst|zdanie|slovo|věta|фраза|предложение|слово|текст|речення|mening|ordet|sætning|setning|propoziție)|(?:把这.{0,6})?(?:翻译|润色|校对|改写|总结|缩写)[^。，：:]{0,12}|.{0,12}(?:翻訳|英訳|和訳|要約|添削|校正)(?:して.{0,8}|お願い.{0,8})?|.{0,14}(?:번역|교정|요약)(?:해.{0,8})?` +
		`) ?$`)
	pointer = lazyregexp.New(`^(?:please |pls |can you |could you |bitte |por favor |please, |now |and )*(?:` +
		`¿?(?:is|are|was) (?:that|this|it) (?:really |even |actually )?(?:true|right|correct|legal|enforceable|accurate|valid)|do you agree(?: with (?:this|that|it))?|any (?:thoughts|opinions?)|(?:opinions|thoughts)|` +
		`(?:rewrite|edit|improve|correct|simplify|read)(?: (?:this|it|that|these|my (?:text|mail|email|message|draft|letter)|the (?:text|wording|letter|mail|message|draft)))?(?: in an? (?:\p{L}+ )?(?:tone|style|voice))|(?:rewrite|correct|edit) (?:this|that|the|my) (?:text|mail|email|message|letter|draft|wording)|` +
		`make (?:it|this|that|my \p{L}+) (?:sound |shorter|longer|friendlier|(?:more|less) (?:polite|formal|friendly|readable|concise|professional|casual)).*|(?:check|fix|improve|correct|polish) (?:the|my) (?:spelling|grammar|wording|phrasing|tone|style|english|german|french|spanish)|how (?:would|do|can) (?:you|i|we) (?:say|put|phrase|translate) (?:this|that|it).*|` +
		`(?:i |we )?(?:just )?(?:got|saw|found|received|copied|heard) (?:this|that|it|these)(?: .{1,60})?|copied from .{1,60}|(?:from|quoting|quote from|text of) (?:the|a|an|our) .{1,60}|(?:this|that|it|here) (?:was|is) (?:the|an?|our|his|her|their|what) (?:\p{L}+ ){0,3}?(?:prompt|text|mail|email|policy|letter|manual|article|quote|draft|wording|chapter|paragraph)(?: .{1,40})?|(?:the|their|his|her|our) (?:\p{L}+ ){0,2}?(?:prompt|text|wording|answer) (?:was|is)|it says here|` +
		`(?:stimmt|ist) das(?: (?:so|wahr|richtig|korrekt))?|(?:korrigiere|übersetze|formuliere|kürze|verbessere|lies)(?: mir)?(?: bitte)? (?:das|dies|es|den text|diesen text|meinen text|die mail)(?: .{1,30})?|übersetze? (?:ins|auf|in) .{1,20}|(?:aus|von) (?:der|dem|unserem|unserer|einem|einer) .{1,40}|zitat .{1,40}|.{1,40}(?:kam|kommt) .{0,20}per mail|` +
		`(?:est-ce |c'est )(?:vrai|correct|juste|exact|légal)|(?:corrige|traduis|reformule|résume|raccourcis|relis)(?:z)? (?:ça|cela|(?:ce|le|mon) (?:texte|message|mail)|en \p{L}+)(?: .{1,20})?|j'ai (?:reçu|trouvé|lu) (?:ça|ceci|cela).*|` +
		`¿?es (?:verdad|correcto|cierto|legal)|(?:corrige|traduce|reformula|resume|acorta|revisa|lee) (?:esto|(?:este|el|mi) (?:texto|mensaje|correo)|al \p{L}+).*|(?:recibí|encontré|vi) (?:esto|eso).*|` +
		`(?:corrija|traduza|reformule|resuma|revise|leia) (?:isso|isto|(?:este|o|meu) (?:texto|e-mail)|para o? ?\p{L}+).*|(?:recebi|achei|encontrei) (?:isso|isto).*|(?:correggi|traduci|riformula|riassumi|accorcia|rivedi|leggi) (?:questo|(?:il|mio|questo) testo|in \p{L}+).*|` +
		`(?:vertaal|corrigeer|herschrijf|lees) (?:dit|deze|naar|de tekst|het).*|popraw (?:ten )?tekst|(?:исправь|перепиши) (?:этот )?текст|` +
		`(?:bunu|şunu) .{0,30}(?:çevir|düzelt|özetle)|.{0,20}yazdığı şu|.{0,20}(?:发来的|发我的|发给我的|写的|说的|寄来的)|(?:这是)?真的吗|` +
		`.{1,12}から(?:届いた.{0,6}|来た.{0,6}|もらった.{0,6})?|.{1,20}(?:書いてた|言ってた|書いていた|送ってきた)|.{1,12}(?:말씀|보낸 (?:메일|글|메시지|거).{0,4}|보냈어|썼어)` +
		`)$`)
	// judged is a question about the text above it.
	// opinion asks for one on a text that it does not name.
	opinion = lazyregexp.New(`(?:^|[^\p{L}])(?:think|sounds?|means?|opinion|make|feel|pense[sz]?(?:-tu|-vous)?|opinas|opinan|parece|acha|acham|pensi|pensate|vind je|vindt u|denk je|hältst du|haltet ihr|meinst du|klingt|bedeutet|heißt|скажешь|думаешь|скажете|думаете|думаєш|скажеш|sądzisz|myślisz|uważasz|myslíš|říkáš|gondolsz|crezi|λες|düşünüyorsun|dersin|tycker du|synes du|mener du|pendapatmu|menurutmu|nghĩ sao|thấy sao|significa|veut dire|quiere decir|quer dizer|vuol dire|значит|означає|znaczy|betekent|betyder|demek)` +
		`(?: (?:of|about|on|by|von|davon|de|da|di|du|van|об?|про|s|despre))?(?: (?:this|that|it|these|das|dies|ça|cela|ce texte|esto|eso|isso|isto|disso|questo|ciò|hiervan|dit|это|этом|этого|це|tym|to|tom|bu|buna|bunu|det|detta|här|ini))?(?: (?:text|texte|texto|testo|tekst|mail|message))?$|^(?:is|are) (?:this|that|it|these) (?:\p{L}+ ){0,2}\p{L}+$|` +
		`(?:怎么样|怎麼樣|怎么看|如何|什么意思)$|(?:どう思う|意味)$|(?:어때|어떻게 생각해|뜻이야)$|^ça veut dire|^(?:что|що) (?:это|це) `)
	// deictic is "this" as the object of a verb; worked is a verb of the agent's own work.
	deictic = lazyregexp.New(`^\p{L}+[^.]* (?:this|these|ça|ceci|cela|esto|isso|isto|questo|das|это|bunu)(?:$|[?.!,]| (?:up|into|in|on|for|to|from|as|with|about|around|over|by|back|auf|ins|en|em|al|per|на)(?:$| ))`)
	worked  = lazyregexp.New(`(?:^|[^\p{L}])(?:do(?:es|ne|ing)?|did|undo|redo|make|fix|work(?:s|ed|ing)?|run|try|implement|add|change|remove|delete|needs?|needed|use|break|build|test|ship|merge|finish|continue|start|stop|handle|keep|wants?|wanted|likes?|expects?|solve|apply|revert|deploy|commit|push|refactor|move|happen|cause|debug|investigate|look|put|set|call|store|cache|split|convert|port|clean|update|ensure|rewrite|rename|extract|inline|migrate|optimi[sz]e|speed|check|profile|document|type|i|we|mach\p{L}*|tu|beheb\p{L}*|ich|wir|fais|faire|fait|je|haz|hacer|hago|yo|quiero|faz|fazer|faça|eu|fa|fare|io|сделай|делай|сделать|перепи\p{L}+|исправ\p{L}+|передел\p{L}+|перенес\p{L}+|я|мы|yap|düzelt)(?:$|[^\p{L}])`)
	judged  = lazyregexp.New(`^(?:is|are|was) (?:this|that|it|these) (?:really |even |actually )?(?:true|correct|legal|enforceable|accurate)\?+$`)
)
