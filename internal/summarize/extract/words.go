package extract

import (
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// idleWords say nothing about what a sentence is about.
var idleWords = snippet.Set(`the and for with that this from are was were has have had been will would can could should must may might not don never always only any all
		into onto over under when while then than them they their there these those its his her our your you also but who what which how why does did done being such per via out off too very just still yet
		already explicitly given granted obtained received previously clearly finally now once again please make sure without ensure cannot unless before after about because so as is it in on of to at by an or if be do we he she us me my no even one ones more most
		user users message turn turns session asked wants wanted said says decided decision rule rules constraint instruction request requested
		der die das den dem ein eine einen und oder mit von für auf aus bei nach vor zum zur ist sind war wird werden hat haben nicht kein keine nie niemals immer nur muss durch
		les des une est sont pour avec dans sur par pas que qui ont été los las una con por para del que como sin nunca siempre
		gave give given gab gegeben gaf gav donné dio deu diede dato verdi vermiş antoi dal dala dali дал дала дали дано adott đã दी दिया ने की को के का में`)

// commonStems are what rules of many things have: one of them names no thing.
var commonStems = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(`file files folder directory table test tests code run use change make data server line function value name new type add work time way thing system read write set get delete remove update
		datei ordner tabelle dossier fichier carpeta archivo tabela pasta cartella map mapp katalog plik soubor složka файл папка каталог таблица dosya klasör mappa kansio`) {
		out[stem(w)] = true
	}
	return out
}()

var (
	// conditional is a word for what has to come first, or for doubt.
	conditional = lazyregexp.New(`(?:^|[^\p{L}])(?:if|once|when|unless|until|as soon as|provided|assuming|after|maybe|perhaps|possibly|later|wenn|falls|sobald|sofern|vielleicht|erst|bis|quand|lorsque|dès que|après|peut-être|à condition|si|cuando|en cuanto|después|quizás?|tal vez|se|quando|assim que|depois|talvez|appena|dopo|forse|als|zodra|nadat|misschien|om|när|efter|kanske|hvis|når|jeśli|jeżeli|gdy|kiedy|może|pokud|jestli|až|možná|если|когда|после|как только|может быть|якщо|коли|після|eğer|sonra|belki|ha|amikor|miután|talán|jos|kun|ehkä|إذا|عندما|بعد|ربما|אם|כאשר|אחרי|אולי|अगर|यदि|जब|शायद|nếu|khi|sau khi|jika|kalau|setelah|mungkin)(?:$|[^\p{L}])|如果|要是|等到|之后|以后|的话|たら|れば|なら|後で|면\s|으면|라면|다면|나서|ถ้า|หาก|เมื่อ`)
	// polite looks like a condition, and sets none.
	polite = lazyregexp.New(`(?:if you (?:want|like|wish)|if possible|when(?:ever)? you(?:'re| are)? (?:like|want|ready)|wenn du (?:willst|magst|möchtest)|si tu veux|si vous voulez|si quieres|se quiser(?:es)?|se vuoi|als je wilt|om du vill|jeśli chcesz|если хочешь)`)
	// ofOthers begins with somebody else who gave a consent.
	ofOthers = lazyregexp.New(`^(?:[\p{L}.'-]+ ){1,3}(?:has |have |had |hat |haben |a |ha |heeft |har )?(?:approved|allowed|permitted|okayed|authori[sz]ed|agreed|signed off|accepted|confirmed|(?:wanted|wants|tried|meant) to (?:approve|allow|permit|okay|authori[sz]e|agree|sign off|accept|confirm)|said|says|thinks|genehmigt|erlaubt|sagt|sagte|gesagt|approuvé|autorisé|dit|autorizó|aprobó|permitió|dijo|autorizou|aprovou|disse|approvato|autorizzato|ha detto|goedgekeurd|zei|godkände|godkänt|разрешил[аи]?|одобрил[аи]?|сказал[аи]?|согласовал[аи]?|zatwierdził[a]?|pozwolił[a]?|schválil[a]?|onayladı|izin verdi|(?:hat|haben|heeft|har) (?:\S+ ){1,4}(?:genehmigt|erlaubt|freigegeben|zugestimmt|goedgekeurd|toegestaan|godkänt))(?:$|[\s,.!])`)
	// undecided is a sentence without a decision, or with one that was taken back.
	undecided = lazyregexp.New(`(?:^|[^\p{L}])(?:whether|undecided|not sure|(?:will|'ll|to|must) decide|let me think|think about it|almost|nearly|but (?:i|we) (?:stopped|refused|declined|blocked|vetoed|said no|changed|undid)|ob|entscheide ich|beinahe|je (?:vais y réfléchir|déciderai)|lo (?:decidiré|pensaré)|решу|почти|ли)(?:$|[^\p{L}])|是否|かどうか|かどうかを|差点`)
	// toAgent begins a question that requests something of the agent.
	toAgent = lazyregexp.New(`^(?:[\p{L}]+,? )?(?:can|could|would|will) you|^(?:bitte )?(?:kannst|könntest|würdest) du|^(?:peux-tu|pouvez-vous|tu peux|¿?puedes|¿?podrías|você pode|pode|podes|puoi|kun je|kan du|możesz|можешь|можете)(?:$|[^\p{L}])`)
	// wanting is a sentence about the wish of somebody else, who is its subject.
	wanting = lazyregexp.New(`^(?:[\p{L}'-]+ ){0,2}?([\p{L}'-]+) (?:wants|wanted|wishes|tries|demands|demanded|möchte|wollte|veut|voulait|quiere|quería|quer|vuole|wil|wilde|chce|хочет|хотел)(?:$|[^\p{L}])`)
	// whole and part say how much a consent is for.
	whole = lazyregexp.New(`(?:^|[^\p{L}])(?:all|every|everything|any|each|entire|whole|both|alle|alles|jede\p{L}?|gesamte\p{L}?|tous|toutes?|tout|chaque|todos?|todas?|cada|tutti|tutte|ogni|elk|iedere|alla|wszystki\p{L}+|все|всех|каждый|tüm|her|bütün)(?:$|[^\p{L}])|所有|全部|每|すべて|全て|全部|모든|전부|جميع|كل`)
	part  = lazyregexp.New(`(?:^|[^\p{L}])(?:one|single|only|just|first|once|two|ein(?:e|en|em)?|nur|une?|seulement|un[ao]?|solo|só|apenas|één|bara|tylko|jed(?:en|ną)|один|одну|только|tek|sadece)(?:$|[^\p{L}])|一个|一個|只|だけ|一つ|하나|만\s`)
	// own is a person who is the user.
	own = lazyregexp.New(`^(?:(?:yes|ok|okay|well|ja|oui|sí|да),? )?(?:i|we|i've|we've|ich|wir|je|j'ai|nous|on|yo|eu|io|ik|jag|jeg|я|мы|ja|my)(?:$|[^\p{L}])`)
)

// Words of a line that states a fact beside a ban.
var (
	// undone is an act in the past that was not done.
	undone = lazyregexp.New(`(?:^|[^\p{L}])(?:(?:not|never|nothing|none|nobody|no)(?: [\p{L}\d'-]+){0,3}? (?:was|were|has been|have been|had been|has|have|had|did)|(?:was|were|has|have|had|did)(?:n't| not| never)(?: been)?|(?:did|was|were|been|but|is|are) not)(?: \p{L}+ly| yet| even)? (\p{L}+)`)
	// onConsent is a rule that demands a question.
	onConsent = lazyregexp.New(`(?:^|[^\p{L}])(?:ask|asking|approval|permission|consent|confirm|check with|rückfrage|frag|demande|pregunt\p{L}+|pergunt\p{L}+)(?:$|[^\p{L}])`)
	// untouched states that a thing is as it was, exists that it is there.
	untouched = lazyregexp.New(`(?:^|[^\p{L}])(?:untouched|unchanged|unmodified|intact|unberührt|unverändert|intacte?s?|inchangée?s?|intact[oa]s?|sin cambios|inalterad[oa]s?|intatt[oa]|ongewijzigd|onaangeroerd|orörda?|oförändra[dt]e?|uændret|uendret|niezmienion\p{L}+|нетронут\p{L}*|без изменений)(?:$|[^\p{L}])`)
	exists    = lazyregexp.New(`^(?:there (?:is|are|was|were)|es gibt|il y a|hay|há|ci sono|c'è|er (?:is|zijn)|det finns|der findes|det finnes) (?:an? |one |two |three |\p{L}+ |\d+ )`)
	// goesOn is a line that has more to say.
	goesOn = lazyregexp.New(`[,;:.!?]\s|\s[-–—]+\s|\s(?:and|then|but|which|that|until|before|und|et|y|e|en|och|i|и)\s`)
	// onRules is a line about the ban itself.
	onRules = lazyregexp.New(`(?:^|[^\p{L}])(?:rules?|bans?|restrictions?|requirements?|instructions?|limits?|exceptions?|need|reason|longer|problem|issue|risk)(?:$|[^\p{L}])`)
	changed = snippet.Set("touched changed modified edited altered fixed updated affected")
)
