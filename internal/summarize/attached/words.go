package attached

import (
	"regexp"
	"slices"
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// presenting has the phrases that announce the text of others, in the languages that users of agents
// write. The text behind a phrase in its line, and below that line, is not the user's.
var presenting = snippet.NewPhrases(
	`(here's|here is|here are) (the|a|an|some|what|my|our|one|it|another|their|his|her)`, `(the|these|this) following`, `following (text|texts|file|files|mail|mails|email|emails|page|pages|message|messages|document|documents|article|note|notes|paragraph|content|code|output|context)`,
	`as follows`, `see (the |)(below|following|attached|text|above)`, `(is|are|text|content|contents|file|mail|email|message|output) below`, `below (is|are)`, `pasted`, `forwarded`, `fwd`, `excerpt`, `transcript`,
	`(content|contents|output|result|results|text|body|copy|summary|summaries|screenshot) (of|from)`, `(the|this|that) (reads|text reads)`, `(sign|label|note|banner|card|poster|sticker|letter) reads`, `(ticket|mail|email|readme|docs|documentation|wiki|page|issue|letter|manual|note|contract) it says`, `complains with`,
	`(turn|make|convert|rework) (this|that|it) (into|) (a|an|) (haiku|poem|song|limerick|story|mail|email|letter|tweet|post|memo|headline|slogan|paragraph|sentence|bullets|bullet points|verse)`,
	`(i|we|i've|we've|i have|we have) (got|received|found|copied) (this|the following|it|that)`, `(sent|forwarded) (me|us)`, `verbatim`, `(summarise|summarize|translate|proofread|review|explain|rewrite|rephrase|paraphrase|classify|answer|reply to|respond to) (this|these|the following|that|it)`,
	`context (you're|you are)`, `use the above`, `i have added`, `some files present`, `relevant (pieces|information|passages)`,
	// German, French, Spanish, Portuguese, Italian, Dutch.
	`folgend(e|er|es|en|em)`, `hier (der|die|das) (text|mail|nachricht|antwort|brief|hinweis|auszug|meldung)`, `hier (ist|sind|kommt) (der|die|das|ein|eine|mein|meine|was)`, `anbei`, `steht (in|im|auf)`, `siehe unten`, `inhalt (der|des|von)`, `übersetze (das|dies|diesen)`, `fasse (das|dies|diesen) zusammen`,
	`voici`, `ci-dessous`, `ce qui suit`, `(texte|fichier|message|document|contenu|mail|courriel) suivant`, `contenu (du|de)`, `traduis`, `résume (ce|le)`,
	`aquí (está|tienes|va|están)`, `lo siguiente`, `siguiente (texto|archivo|correo|mensaje|documento|contenido)`, `a continuación`, `contenido (de|del)`, `traduce (esto|este)`, `resume (esto|este|el)`,
	`(segue|seguem)`, `o seguinte`, `seguinte (texto|arquivo|mensagem|documento|conteúdo)`, `abaixo`, `aqui está`, `conteúdo (de|do)`, `traduza`,
	`ecco`, `seguente (testo|file|messaggio|documento|contenuto)`, `di seguito`, `contenuto (di|del)`, `traduci`,
	`hieronder`, `volgende`, `hier is`, `inhoud van`,
	// Scandinavian and Slavic languages, Turkish, others.
	`nedan`, `följande`, `här är`, `nedenfor`, `følgende`, `seuraava*`, `poniż*`, `następując*`, `treść`, `níže`, `následující*`, `zde je`, `obsah`, `napsal*`,
	`ниже`, `следующ*`, `вот (что|текст|файл|письмо|содержимое|лог|ответ|вывод)`, `содержимое`, `нижче`, `наступн*`, `вміст`,
	`aşağıda*`, `şöyle`, `içeriği`, `következő*`, `mai jos`, `următor*`, `παρακάτω`, `ακόλουθ*`,
	`berikut`, `isi (file|berkas|dokumen)`, `dưới đây`, `sau đây`, `nội dung`,
	`以下`, `如下`, `下面(是|的|这)`, `下列(内容|文件|文字)`, `内容是`, `次の(内容|文章|メール|ファイル|ログ|出力|メッセージ)`, `内容は`, `다음(은|의| 내용| 파일| 글| 메일| 메시지)`, `아래`, `내용`, `التالي*`, `فيما يلي`, `محتوى`, `נמצא למטה`, `הבא`, `निम्न*`, `नीचे`, `ต่อไปนี้`, `ด้านล่าง`,
)

// speaking are verbs of speech: what stands behind one is said by somebody.
var speaking = snippet.NewPhrases(
	`(says|said|wrote|writes|states|stated|replied|answered|commented|told|claims|claimed) (me|us|back|that|the following|)`, `(schreibt|schrieb|schrieben|sagt|sagte|sagten|antwortet|antwortete|antworteten|lautet|meint)`, `(a|ont) (écrit|dit|répondu|envoyé)`, `(écrit|dit|répond|indique)`, `(dice|dijo|dijeron|escribió|escribieron|respondió|respondieron|contestó|contestaron|mandaron|enviaron|pone)`, `(diz|escreveu|escreveram|disse|disseram|respondeu|responderam|mandaram|enviaram)`,
	`(ha|hanno) (scritto|detto|risposto|mandato)`, `(schreef|schreven|zegt|zei|antwoordde|antwoordden|stuurde)`, `skrev`, `säger`, `siger`, `sier`, `napisał*`, `odpisał*`, `odpowiedział*`, `przysłał*`, `mówi*`, `pisze*`, `napsal*`, `píše*`, `пишет*`, `написал*`, `говорит*`, `сказал*`, `ответил*`, `пише`, `написав`, `(diyor|yazdı|dedi)`, `írta`, `mondta`, `a scris`, `spune`, `写道`, `说`, `說`, `显示：`, `書いてあ`, `と言っ`, `라고`, `يقول`, `قال`, `כתב`, `אמר`, `कहा`, `nói`, `berkata`, `mengatakan`,
)

// selves before a verb of speech make it the user's own speech, or a wish: "I said", "it must
// say", "be told". Fillers may stand between.
var (
	selves = snippet.Set(`i i've we we've ich wir je j'ai yo eu io ik я be been being to should must can could will would shall may might not never always only don't doesn't it let that which
		soll sollte muss doit debe deve должен 我 私`)
	fillers = snippet.Set(`already just have had also not never always only`)
)

// isSelf reports whether a text ends in the user, or a wish.
func isSelf(before string) bool {
	for _, w := range slices.Backward(strings.Fields(before)) {
		if selves[w] || strings.HasSuffix(w, "我") || strings.HasSuffix(w, "私") {
			return true
		}
		if !fillers[w] {
			return false
		}
	}
	return false
}

// demonstrative ends in a pointer to the text below.
var demonstrative = lazyregexp.New(`(?:^|[^\p{L}])(?:(?:make|think|opinion) (?:of|about|on)|look(?: at)?|read|see|check|summari[sz]e|translate|proofread|review|about|from|regarding|got|is|returned|context|text) (?:this|these|that|it|the (?:text|page|mail|email|message|paragraph|article|document))(?: (?:text|page|mail|email|message|paragraph|article|document|one))?[.?!:]*$|` +
	`^(?:please )?(?:proofread|translate|summari[sz]e|paraphrase|rephrase) (?:\p{L}+ ){0,4}\p{L}+[.?!]*$`)

// topics begin a line of the user, or a list of rules below it.
var topics = snippet.Set(`rule rules constraint constraints requirement requirements guideline guidelines convention conventions policy policies important critical crucial essential mandatory absolute absolutes final key hard priority preference preferences note notes nb ps remember reminder caution
	must never always also todo todos to-do task tasks goal goals plan steps step acceptance criteria criterion definition scope limit limits style preference preferences non-goals don'ts dos
	commit commits branch branches test tests testing doc docs documentation code naming names language languages format formatting security performance api database db schema migrations migration
	deploy deployment deployments release releases build ci lint linting dependency dependencies deps error errors-handling logging comments tone design ui ux css frontend backend git style-guide
	question edit update btw fyi imo tldr yes no ok okay sorry thanks hint tip fix bug feature change changes refactor context-rules exception exceptions one first second third finally last next
	regel regeln vorgaben vorgabe anforderungen anforderung wichtig hinweis bitte ziel ziele aufgabe aufgaben achtung
	règle règles contrainte contraintes exigences important attention objectif tâche tâches regla reglas restricciones requisitos importante objetivo tarea tareas regra regras restrições requisitos objetivo tarefas
	regola regole vincoli requisiti obiettivo regels eisen belangrijk doel zasady wymagania ważne cel pravidla důležité viktigt regler krav viktig vigtigt säännöt tärkeää
	правила правило требования важно цель задача ограничения вимоги важливо kurallar kural önemli gereksinimler szabályok fontos reguli κανόνες aturan penting quy-tắc
	要求 规则 規則 约束 注意 重要 目标 任务 限制 ルール 規約 要件 注意点 制約 규칙 요구사항 주의 중요 القواعد مهم नियम สำคัญ`)

// voices are words with which users speak to an agent: a line that has one is no title.
var voices = snippet.Set(`i i'm i'd i'll i've we we're we'd we'll we've you you're your yours my our me us let's lets let please pls can could would should shall will want wants need needs make sure
	do don't dont does doesn't is isn't are aren't have has never always only must and but or so also then if when while since because not just yes yeah yep no nope ok okay alright btw hey hi hello thanks thank cool great nice wow sorry oh right well hmm actually anyway listen heads guys folks note one two three rule rules
	add fix update write read use run check refactor implement build create remove delete move rename look find test clean change improve review continue go keep stop start try show tell give get put set copy split merge merge rebase commit push pull
	deploy install upgrade replace rewrite simplify optimize debug investigate explain describe list compare consider remember avoid ensure wait stop work rerun again what why how where who which whats what's
	bitte ich wir du mach kannst könntest baue schreibe lies prüfe ändere füge entferne nutze und aber oder wenn nie niemals immer nur nicht ja nein danke
	je tu nous s'il peux fais ajoute corrige écris lis mais et si jamais toujours pas oui non merci yo puedes por favor haz agrega corrige escribe lee pero y nunca siempre no sí gracias
	eu você por faça adicione corrija escreva leia mas e não nunca sempre sim obrigado io puoi per fai aggiungi correggi scrivi leggi ma e non mai sempre sì grazie ik jij kun alsjeblieft maak voeg schrijf lees maar en niet nooit altijd ja nee
	proszę możesz zrób dodaj napraw napisz przeczytaj ale i nie nigdy zawsze tak пожалуйста ты можешь сделай добавь исправь напиши прочитай но и не никогда всегда да нет lütfen yap ekle düzelt yaz oku ama ve`)

// requests begin an order to the agent in the languages and scripts that voices has no verbs of.
var requests = snippet.NewPhrases(
	"shorten", "translate", "korrigier*", "beheb*", "reparier*", "implementier*", "erstell*", "erweiter*", "corrig*", "répar*", "rends", "mets", "passe", "change*", "enlève*", "ajout*", "implément*", "arregl*", "implement*", "añad*", "cre(a|e|i)", "consert*", "corrij*", "adicion*", "aggiust*", "sistema", "aggiung*", "herstel*", "repareer",
	"napraw*", "popraw*", "zaimplement*", "исправ*", "перепи*", "передела*", "сделай*", "напиши*", "почин*", "добав*", "реализу*", "виправ*", "додай*", "поправ*", "oprav*", "přid*", "poprav*", "dodaj*", "javíts*", "adaug*", "repar*", "διόρθω*", "πρόσθε*", "düzelt*", "rätta", "lägg", "fiks*", "legg", "tilføj", "korjaa", "lisää",
	"修复", "修改", "改成", "改为", "换成", "修正", "添加", "增加", "实现", "优化", "重构", "写一", "直して", "追加して", "実装して", "作って", "고쳐", "수정해", "추가해", "만들어", "أصلح", "أضف", "תקן", "הוסף", "ठीक कर*", "जोड़*", "sửa", "thêm", "perbaiki", "tambahkan", "แก้", "เพิ่ม",
)

// foreigners are words for text of others, and for those who speak in it.
var foreigners = snippet.Set(`file files document documents doc page pages article mail email e-mail message messages mails result results output outputs observation response reply answer answers content contents context text
	log logs warning warn info debug error stdout stderr trace traceback exception notification alert resource source sources reference references quote excerpt snippet clipboard screenshot attachment attachments attached transcript
	tool tools function call hook system assistant human user agent subagent bot ai model speaker from to cc subject date author sender description summary title comment comments review ticket issue pr readme changelog memory memories
	search website webpage url link chat thread conversation history voicemail ocr caption knowledge article wiki spec slide
	datei dokument inhalt ausgabe ergebnis nachricht antwort seite quelle betreff von fichier contenu sortie résultat message réponse source objet archivo contenido salida resultado mensaje respuesta fuente asunto correo
	arquivo conteúdo saída resultado mensagem resposta fonte assunto contenuto uscita risultato messaggio risposta fonte oggetto bestand inhoud uitvoer resultaat bericht antwoord bron onderwerp plik treść wynik wiadomość odpowiedź źródło temat
	файл содержимое вывод результат сообщение ответ источник тема dosya içerik içeriği çıktı sonuç mesaj yanıt kaynak konu 文件 内容 文件内容 输出 结果 消息 回答 来源 ファイル 出力 結果 メッセージ 파일 내용 출력 결과 메시지 ملف محتوى رسالة نتيجة`)

// labelWords splits a label into its words.
func labelWords(s string) []string {
	return strings.FieldsFunc(strings.Trim(snippet.Lowered(s), "_"), func(r rune) bool { return strings.ContainsRune(" \t,;*/&+\"'“”()[]{}<>@|`#", r) && r != '\'' })
}

// isForeigner reports a word for text of others, alone or in a name such as tool_result.
func isForeigner(w string) bool {
	return foreigners[w] || strings.HasPrefix(w, "dokumenta") && w != "dokumentation" || strings.Contains(w, "_") && slices.ContainsFunc(strings.Split(w, "_"), isForeigner)
}

// likened is speech that the user repeats: "as you said".
var likened = lazyregexp.New(`(?:^|[^\p{L}])(?:as|like|wie|comme|como|come|zoals|jak|как) (?:i|we|you|ich|wir|du|je|tu|yo|tú|ik|я|мы|ты)(?:$|[^\p{L}])`)

// asking begins a question, and no request: the text behind its colon is what it is about.
var asking = lazyregexp.New(`^(?:how|why|where|what|who|which) (?:do|does|did|would|should|can|could|is|are|was|were|to) |^(?:wie|warum|was|wer) (?:sag|heiß|bedeut|übersetz)|^(?:comment|pourquoi|cómo|por qué|como|come) (?:dit|on|se|si|dire)`)

// isOwnLabel reports a label that heads words of the user: of a topic, or one that speaks to
// the agent.
func isOwnLabel(s string) bool {
	if strings.ContainsAny(s, "[]{}<>@|=\\") || strings.Contains(s, ":") && clockTime().MatchString(s) || strings.Contains(s, ".") && fileName().MatchString(s) {
		return false
	}
	if strings.Contains(s, " ") && asking().MatchString(snippet.Lowered(s)) {
		return false
	}
	all := labelWords(s)
	if len(all) == 2 && topics[all[0]] && matters[all[1]] {
		return true
	}
	for i, w := range all {
		if isForeigner(w) && (w != "answer" || i == 0 || all[i-1] != "final") && (i > 0 || len(all) < 2 || !voices[all[0]]) && !anyIn(all, ruleNouns) {
			return false
		}
	}
	if len(all) == 0 || !anyIn(all, ruleNouns) && (snippet.Matches(snippet.Lowered(s), presenting) || foreignSpeech(snippet.Lowered(s), speaking, false) >= 0 && !likened().MatchString(snippet.Lowered(s))) {
		return false
	}
	return topics[all[0]] || topics[all[len(all)-1]] || topics[strings.TrimRight(all[0], "0123456789.")] || len(all) > 1 && (openers[all[0]] || anyIn(all, voices))
}

// matters are names of texts that a rule can be about: "Commit messages: never …".
var matters = snippet.Set(`messages comments descriptions titles docs errors texts text copy`)

// ruleNouns name a label of rules, whatever they are about.
var ruleNouns = snippet.Set(`rule rules requirement requirements constraint constraints conventions guidelines must never always don't definition criteria regel regeln vorgaben anforderungen règles contraintes reglas requisitos regras
	regole regels eisen zasady wymagania pravidla regler krav säännöt правила требования вимоги kurallar szabályok reguli κανόνες aturan 规则 規則 要求 约束 ルール 規約 要件 규칙 요구사항 القواعد`)

// openers begin a label of several words that is a sentence's.
var openers = snippet.Set(`for in on when if while as by with without before after regarding concerning about and but also one another some more most the für bei wenn beim pour si dans para si en quando se per voor als dla для если`)

// anyIn reports whether one of words is in a set.
func anyIn(words []string, set map[string]bool) bool {
	return slices.ContainsFunc(words, func(w string) bool { return set[w] })
}

// hasVoice reports a line in which the user speaks.
func hasVoice(s string) bool {
	all := labelWords(strings.TrimRight(s, ".!?:"))
	if len(all) == 0 || strings.ContainsAny(s, "<>{}|=") || isForeigner(all[0]) { // a title, though it holds a verb
		return false
	}
	lower := snippet.Lowered(s)
	return anyIn(all, voices) || snippet.Matches(lower, requests) || snippet.Matches(lower, snippet.RuleWords)
}

// ownHeading reports the heading of a list of rules.
func ownHeading(s string) bool {
	s = strings.TrimLeft(s, "#")
	if !strings.HasPrefix(s, " ") || strings.Trim(s, " #") == "" || strings.HasSuffix(s, "#") {
		return false
	}
	all := labelWords(s)
	return len(all) <= 5 && isOwnLabel(strings.TrimSpace(s)) && !noteWords[all[0]]
}

// noteWords begin headings that documents have as often as messages of users.
var noteWords = snippet.Set(`note notes setup docs documentation`)

// Names of a text, in the languages that users of agents write most, of texts that others stand
// in, and of their files.
var (
	textNames = strings.Fields(`line lines note notes sentence sentences paragraph paragraphs passage passages message messages comment comments warning warnings instruction instructions remark remarks
		entry entries hint hints quote quotes statement statements banner banners section sections letter letters memo memos post posts replies reply text texts snippet snippets sign sticker
		zeile zeilen notiz zettel satz absatz kommentar hinweis nachricht eintrag ligne phrase paragraphe commentaire texte línea nota frase párrafo comentario mensaje texto
		linha parágrafo comentário mensagem riga paragrafo commento messaggio testo regel zin notitie bericht tekst`)
	documentNames = strings.Fields(`readme document doc docs file page log mail e-mail email wiki website site article ticket issue pr spec manual handbook guide changelog contributing
		dokument datei seite handbuch fichier documento archivo página arquivo pagina bestand`)
	fileEndings = strings.Fields(`md txt rst html pdf docx log json yaml yml`)

	texts     = strings.Join(textNames, "|")
	documents = strings.Join(documentNames, "|") + `|\S+\.(?:` + strings.Join(fileEndings, "|") + `)`
	named     = snippet.Set(strings.Join(slices.Concat(textNames, documentNames, fileEndings), " "))
)

// Sentences that speak of a text which is not the user's: what follows them is that text.
var mentions = []func() *regexp.Regexp{
	// "I found a note", "the README has a line": having one.
	lazyregexp.New(`(?:^|[^\p{L}])(?:has|have|had|contains?|contained|includes?|included|found|got|saw|seen|received|noticed|spotted|discovered|carries|shows|left|there is|there's|there was|gefunden|steht|hat|enthält|gesehen|bekommen|(?:y|il|elle|qui) a|contient|trouvé|reçu|hay|tiene|encontré|recibí|contiene|tem|há|encontrei|recebi|trovato|ricevuto|heeft|bevat|vond)\s` +
		`(?:(?:an?|the|this|that|one|some|these|two|odd|strange|weird|new|old|short|long|another|eine?n?|der|die|das|diese[rns]?|une?|la|el|una?|uma?|een|de) ){0,3}(?:` + texts + `)(?:$|[^\p{L}])`),
	// "what does this line mean?"
	lazyregexp.New(`(?:this|that|the|diese[rs]?|der|die|das|cette|ce|la|le|esta|este|essa|esse|questa|deze|die) (?:` + texts + `)(?: \p{L}+){0,3} (?:means?|about|for|bedeutet|signifie|dire|significa|betekent)(?:$|[^\p{L}])|(?:bedeutet|heißt|signifie|significa|betekent|quiere decir|quer dizer|vuol dire) (?:diese[rs]?|der|die|das|cette|ce|la|le|esta|este|essa|esse|questa|deze|die) (?:` + texts + `)`),
	// "the document demands that you do this"
	lazyregexp.New(`(?:^|[^\p{L}])(?:` + texts + `|` + documents + `) (?:\p{L}+ly )?(?:demands|wants|asks|tells|insists|instructs|orders|suggests|recommends|requests|urges|verlangt|fordert|will|empfiehlt|demande|exige|veut|recommande|pide|exige|quiere|recomienda|pede|exige|quer|recomenda|chiede|vuole|eist|vraagt)(?:$|[^\p{L}])`),
	// "From the manual, page 12.", alone on its line
	lazyregexp.New(`^(?:from|aus|du|dal|del|da|do|uit) (?:the |our |dem |der |unserem |het )?(?:` + documents + `)(?:, \p{L}+\.? ?\d+)?[.:]?$`),
	// "I opened CONTRIBUTING.md just now.", alone on its line
	lazyregexp.New(`^(?:i|we|i've|we've|i have|we have|ich habe|j'ai|he|ho|eu|ik heb) (?:just |now |also |gerade |soeben )?(?:opened|read|found|got|received|saw|seen|came across|looked at|looked into|geöffnet|gelesen|bekommen|ouvert|lu|reçu|abierto|leído|recibido|abri|li|recebi|aperto|letto|ricevuto)(?: \S+){0,3} (?:` + documents + `)(?: \S+){0,4}[.:!]?$|^ich habe (?:\S+ ){0,3}(?:` + documents + `)(?: \S+){0,3} (?:geöffnet|gelesen|bekommen)[.:!]?$`),
}

// accordingTo begins a sentence with its source: "According to the runbook, always …".
var accordingTo = lazyregexp.New(`^(?:according to|as per|laut|gemäß|selon|d'après|según|segundo|secondo|volgens|zgodnie z|согласно|по словам) [^,:]{1,60}[,:]`)

// relayed is a conclusion of the user from words of a person: "my boss says …, so never …".
var relayed = lazyregexp.New(`(?i)^(?:my|our|mein|meine|unser|unsere|mon|ma|notre|mi|nuestro|nuestra|meu|minha|mio|mia|mijn|ons) \p{L}+(?: \p{L}+)? (?:says|said|wants|schreibt|sagt|sagte|dit|dice|diz|disse|zegt|told us)[^.!?:"]*, (?:so|also|daher|deshalb|donc|así que|por eso|então|por isso|quindi|perciò|dus) (?:please )?(never|always|only|don't|do not|you|we|nie|niemals|immer|nur|ne|toujours|nunca|siempre|sempre|non|mai|nooit|altijd)[^.!?]*`)
