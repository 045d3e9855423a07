package extract

import (
	"regexp"
	"strings"
)

// idleWords say nothing about what a sentence is about.
var idleWords = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(`the and for with that this from are was were has have had been will would can could should must may might not don never always only any all
		into onto over under when while then than them they their there these those its his her our your you also but who what which how why does did done being such per via out off too very just still yet
		already explicitly given granted obtained received previously clearly finally now once again please make sure without ensure cannot unless before after about because so as is it in on of to at by an or if be do we he she us me my no even one ones more most
		user users message turn turns session asked wants wanted said says decided decision rule rules constraint instruction request requested
		der die das den dem ein eine einen und oder mit von für auf aus bei nach vor zum zur ist sind war wird werden hat haben nicht kein keine nie niemals immer nur muss durch
		les des une est sont pour avec dans sur par pas que qui ont été los las una con por para del que como sin nunca siempre
		gave give given gab gegeben gaf gav donné dio deu diede dato verdi vermiş antoi dal dala dali дал дала дали дано adott đã दी दिया ने की को के का में`) {
		out[w] = true
	}
	return out
}()

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
	conditional = regexp.MustCompile(`(?:^|[^\p{L}])(?:if|once|when|unless|until|as soon as|provided|assuming|after|maybe|perhaps|possibly|later|wenn|falls|sobald|sofern|vielleicht|erst|bis|quand|lorsque|dès que|après|peut-être|à condition|si|cuando|en cuanto|después|quizás?|tal vez|se|quando|assim que|depois|talvez|appena|dopo|forse|als|zodra|nadat|misschien|om|när|efter|kanske|hvis|når|jeśli|jeżeli|gdy|kiedy|może|pokud|jestli|až|možná|если|когда|после|как только|может быть|якщо|коли|після|eğer|sonra|belki|ha|amikor|miután|talán|jos|kun|ehkä|إذا|عندما|بعد|ربما|אם|כאשר|אחרי|אולי|अगर|यदि|जब|शायद|nếu|khi|sau khi|jika|kalau|setelah|mungkin)(?:$|[^\p{L}])|如果|要是|等到|之后|以后|的话|たら|れば|なら|後で|면\s|으면|라면|다면|나서|ถ้า|หาก|เมื่อ`)
	// polite is a condition that is none.
	polite = regexp.MustCompile(`(?:if you (?:want|like|wish)|if possible|when(?:ever)? you(?:'re| are)? (?:like|want|ready)|wenn du (?:willst|magst|möchtest)|si tu veux|si vous voulez|si quieres|se quiser(?:es)?|se vuoi|als je wilt|om du vill|jeśli chcesz|если хочешь)`)
	// ofOthers begins with somebody else who gave a consent.
	ofOthers = regexp.MustCompile(`^(?:[\p{L}.'-]+ ){1,3}(?:has |have |had |hat |haben |a |ha |heeft |har )?(?:approved|allowed|permitted|okayed|authori[sz]ed|agreed|signed off|accepted|confirmed|said|says|thinks|genehmigt|erlaubt|sagt|sagte|gesagt|approuvé|autorisé|dit|autorizó|aprobó|permitió|dijo|autorizou|aprovou|disse|approvato|autorizzato|ha detto|goedgekeurd|zei|godkände|godkänt|разрешил[аи]?|одобрил[аи]?|сказал[аи]?|согласовал[аи]?|zatwierdził[a]?|pozwolił[a]?|schválil[a]?|onayladı|izin verdi|(?:hat|haben|heeft|har) (?:\S+ ){1,4}(?:genehmigt|erlaubt|freigegeben|zugestimmt|goedgekeurd|toegestaan|godkänt))(?:$|[\s,.!])`)
	// own is a person who is the user.
	own = regexp.MustCompile(`^(?:(?:yes|ok|okay|well|ja|oui|sí|да),? )?(?:i|we|i've|we've|ich|wir|je|j'ai|nous|on|yo|eu|io|ik|jag|jeg|я|мы|ja|my)(?:$|[^\p{L}])`)
)
