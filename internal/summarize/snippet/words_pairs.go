package snippet

// pair is two lists of words; a sentence with one of each is a rule.
type pair struct{ first, second *Phrases }

func (p pair) in(lower string) bool { return Matches(lower, p.first) && Matches(lower, p.second) }

// pairs are rules in two places of a sentence, in the languages that users of agents write.
var pairs = []pair{
	{beforeWords, askWords},
	{beforeWords, consentWords},
	{withoutWords, consentWords},
	{NewPhrases("require*", "need", "needs", "bedarf", "bedürfen", "braucht", "nécessite*", "requier*", "requer*", "richied*", "vereist*"), consentWords},
	{NewPhrases("we", "wir", "nous", "on"), NewPhrases("in (this|our) (repo|repository|project|codebase|team)", "in diesem (repo|projekt)", "dans ce (dépôt|projet)")},
	// "Leave it as it is", "keep it under 200 lines".
	{
		NewPhrases("leave", "leaving", "left", "keep", "hold", "stay*", "remain*", "lass", "lasst", "lassen", "laisse*", "deja", "deje", "deixe*", "lascia*", "laat", "låt", "zostaw*", "nech"),
		NewPhrases("alone", "as (is|it is|they are)", "untouched", "unchanged", "the same", "intact", "compatible", "frozen", "that way", "stable", "under", "below", "within", "inside", "small", "short", "minimal",
			"in (ruhe|frieden)", "unverändert", "wie (es|sie|er) (ist|sind)", "tel", "telle", "tels", "telles", "tranquille", "comme", "como", "en paz", "tal cual", "em paz", "stare", "com'è", "met rust", "zoals", "vara", "som", "w spokoju", "tak jak"),
	},
	// "Every query needs a limit."
	{
		NewPhrases("every", "each", "everything", "jede*", "cada", "chaque", "ogni", "elke"),
		NewPhrases("need", "needs", "require*", "gets (a|an)", "stays", "carries", "belongs", "goes (in|into|to|through|behind|under|on)", "braucht", "bekommt", "benötigt", "necesita", "lleva", "precisa", "a besoin", "porte", "ha bisogno", "heeft", "krijgt"),
	},
	{NewPhrases("all"), NewPhrases("(goes|go|belong|belongs|lives|live) (in|into|to|through|behind|under|on)")},
	{NewPhrases("anything", "everything", "all"), NewPhrases("except", "but the")},
	{NewPhrases("i (want|need)", "i would like"), NewPhrases("to (stay|remain|be|keep)")},
	// "Answer in French", "max 50 characters".
	{
		NewPhrases("answer", "reply", "respond", "antworte", "réponds", "responde", "responda", "rispondi", "antwoord", "write", "schreib*", "écri*", "escrib*", "escrev*", "scriv*", "schrijf", "commit message*"),
		NewPhrases("briefly", "concisely", "shortly", "tersely", "kurz", "knapp", "brièvement", "brevemente", "kort", "in (english|german|french|spanish|italian|dutch|polish|russian|chinese|japanese|korean|portuguese|the imperative)", "auf (deutsch|englisch)", "en (français|anglais|español|inglés)", "em (português|inglês)", "in (italiano|inglese|het nederlands|het engels)"),
	},
	{NewPhrases("max", "max.", "maximum"), NewPhrases("0*", "1*", "2*", "3*", "4*", "5*", "6*", "7*", "8*", "9*")},
}

// Words of requests to be asked first, or not to go on without consent.
var (
	askWords = NewPhrases(
		"ask", "check with", "consult", "run it by", "talk to (me|us)", "(get|need|have|wait for) (my|our)", "clear it with",
		"frag", "frage", "fragst", "fragt", "sprich dich", "absprechen", "sag mir", "bescheid", "melde dich", "rückfrag*", "hol", "demand(e|ez)", "demande-moi", "consult*", "consulte-moi", "préviens*", "avertis*", "parle-m'en",
		"pregunt*", "pregúnt*", "consúlt*", "avís*", "avis*", "me avise", "pergunt*", "chied*", "avvis*", "sent* me", "vraag", "vra", "overleg", "meld",
		"pytaj*", "zapytaj*", "spytaj*", "skonsultuj*", "спрашива*", "спрос*", "посоветуйся", "согласу*", "питай*", "запитай*", "спитай*", "порадься", "узгодь", "попитай*", "pitaj*", "upitaj*", "питај*", "питајте", "vprašaj*", "zeptej*", "ptej*", "opýtaj*", "spýtaj*",
		"kérdez*", "întreabă*", "intreaba*", "fråga*", "hör med", "spør*", "spørg*", "kysy*", "küsi*", "paklausk*", "klausk*", "pajautā*", "jautā*", "ρώτα*", "ρωτ*", "sor", "sorun", "danış*", "اسأل*", "استشر*", "تسأل*", "استأذن*",
		"שאל", "תשאל", "תשאלי", "שאלי", "תתייעץ", "התייעץ", "بپرس*", "पूछ*", "জিজ্ঞ*", "கேள்*", "கேட்*", "ถาม", "hỏi", "tanya*", "tanyakan", "itanong*", "tanungin*", "magtanong*", "pregunta'm", "uliza*",
		"säg till", "si fra", "sig til", "haber ver", "powiedz mi", "daj (mi |)znać", "скажи мне", "предупреди*", "сообщи*", "попередь*", "řekni mi", "dej (mi |)vědět", "laat het me weten", "kerro", "ilmoita", "szólj*", "spune-mi", "anunță-mă", "πες μου", "ενημέρωσ*", "أخبرني", "أبلغني", "תגיד לי", "תודיע לי", "बताओ", "बताना", "báo", "beritahu",
		"问我", "問我", "先问", "征求", "征得", "告诉我", "请示", "跟我确认", "和我确认", "聞いて", "教えて", "知らせて", "相談", "確認して", "確認を", "물어", "알려", "확인받", "상의", "허락받",
	)
	beforeWords = NewPhrases(
		"before*", "prior", "first", "until", "vor", "bevor", "vorher", "ehe", "zuerst", "erst", "avant", "d'abord", "antes", "abans", "prima", "voordat", "voor", "eerst", "zanim", "przed", "najpierw", "перед", "прежде", "сначала", "до", "перш", "спочатку", "преди",
		"prije", "pre", "prvo", "пре", "пре него", "preden", "pred", "než", "nejdřív", "kým", "skôr", "mielőtt", "előtt", "előbb", "înainte", "inainte", "întâi", "innan", "före", "först", "før", "først", "inden", "ennen", "ensin", "enne", "prieš", "pirma", "pirms",
		"πριν", "önce", "evvel", "قبل", "לפני", "پیش", "पहले", "আগে", "முன்*", "ก่อน", "trước", "sebelum", "dulu", "bago", "muna", "kabla", "前", "先", "전에", "먼저",
	)
	// withoutWords with one of consentWords leave a decision to the user.
	withoutWords = NewPhrases("without", "unless", "until", "ohne", "sans", "sin", "sense", "sem", "senza", "zonder", "bez", "без", "uden", "uten", "utan", "ilman", "nélkül", "fără", "χωρίς", "olmadan", "sormadan", "almadan", "بدون", "دون", "בלי", "ללא",
		"बिना", "ছাড়া", "เว้นแต่", "mà không có", "chưa", "tanpa", "nang wala*", "bila", "未经", "未經", "没有我", "なしに", "なしで", "なく", "없이", "nisam", "brez", "be", "ilma")
	consentWords = NewPhrases(
		"(my|our|prior|explicit) (ok|okay|consent|permission|approval|approving|go-ahead|say-so|review|sign-off|signoff|confirmation|blessing|word|yes|knowledge|agreement)", "asking", "permission", "approval", "consent", "i say so", "i (ask|request|approve|confirm|agree)", "telling me", "(me|mich|zu|att|å|at) (demander|fragen|fråga|spørre|spørge|vragen)", "chiederm*", "спроса", "спрашивая", "întreb*",
		"freigabe", "zustimmung", "erlaubnis", "genehmigung", "einwilligung", "mein (ok|okay|wissen)", "bestätigung", "rückfrage", "rücksprache", "absprache", "accord", "permission", "autorisation", "feu vert", "aval", "permiso", "permís", "aprobación", "autorización", "preguntar*", "consentimiento", "consultar*",
		"aprovação", "autorização", "permissão", "perguntar", "consentimento", "permesso", "consenso", "approvazione", "autorizzazione", "chiedere", "toestemming", "goedkeuring", "akkoord", "overleg", "zgod*", "pozwoleni*", "pytania", "согласи*", "разрешени*", "ведома", "одобрени*", "згод*", "дозвол*", "souhlas*", "svolen*", "súhlas*",
		"engedély*", "jóváhagyás*", "acord*", "permisiune*", "aprobare*", "lov", "godkännande", "tillåtelse", "tillatelse", "tilladelse", "godkendelse", "godkjenning", "lupaa", "suostumus*", "άδεια", "έγκριση", "onay*", "izn*", "sormadan", "موافق*", "إذن*", "אישור*", "רשות*", "अनुमति", "पूछे", "অনুমতি", "izin", "pahintulot", "同意", "许可", "允许", "許可", "承認", "確認", "허락", "승인", "동의", "odobrenj*", "дозвол*", "dovoljenj*",
	)
)
