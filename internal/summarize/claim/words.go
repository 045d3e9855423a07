package claim

import (
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// approvals are phrases that state a consent of anyone.
var approvals = snippet.NewPhrases(
	"(approved|pre-approved|preapproved|authorized|authorised|pre-authorized|pre-authorised|sanctioned|ratified|endorsed|greenlit|greenlighted|green-lit|okayed|ok'd|oked|rubber-stamped|waived|consented)",
	"(approves|authorizes|authorises|endorses|consents|approving)", "(approval|authorization|authorisation|consent|permission|sign-off|signoff|clearance|blessing|go-ahead|green light|greenlight|thumbs up|thumbs-up) (was|is|has been|had been|have been|given|granted|received|obtained|secured|from|by|in hand|on file|came|confirmed|recorded|already|exists|for|to proceed|to deploy)",
	"(gave|give|gives|given|giving|got|get|have|has|had|received|obtained|granted|with|under|per|by|on) (the|his|her|their|its|your|our|an|a|my|full|explicit|written|verbal|prior|) (approval|authorization|authorisation|consent|permission|sign-off|signoff|clearance|blessing|go-ahead|green light|greenlight|thumbs up|thumbs-up|nod|okay|ok|assent|mandate)",
	"(approval|authorization|authorisation|consent|permission|sign-off|signoff|clearance|go-ahead): (given|granted|received|obtained|yes|ok)", "(signed|signs) off", "(sign-off|signoff) (of|on)", "lgtm", "permitted", "nod of approval", "(verbal|written|oral|formal) (ok|okay|yes)", "(got|have|received) (the |)confirmation", "confirmation that", "(exception|exemption) granted", "klarsignal*", "(need not|needn't|not need to|n't need to|not have to|n't have to) be (asked|consulted)", "okとのこと", "(was|is|were|been|had|has|have|we|all|everyone|they|as|already|mutually) agreed", "agreed (that|to|on|upon|by)", "(mutual|common) (agreement|consent)", "in agreement", "(cleared|free|good|clear|entitled) to (go|proceed|deploy|merge|push|ship|delete|run|release|act)", "cleared for",
	"(is|are|was|were|be|been|'s|'re) (perfectly|totally|completely|absolutely|) (fine|happy|ok|okay|cool|comfortable|good|on board|onboard) with", "go ahead given", "all clear", "nihil obstat", "imprimatur", "with impunity", "👍", "🆗", "👌",
	// German, Dutch, Scandinavian languages, Finnish.
	"freigabe", "freigegeben", "genehmig*", "erlaubnis", "erlaubt", "zugestimmt", "zustimm*", "einverstand*", "bewillig*", "abgesegnet", "(grünes|grünem) licht", "gebilligt", "billigt", "billigung", "vereinbart", "befürwort*", "eingewilligt", "einwillig*", "absegn*", "gutgeheißen", "abgenickt", "(nichts|nix) dagegen", "ermächtig*", "gestattet", "bevollmächtig*",
	"goedgekeurd", "goedkeur*", "toestemming", "akkoord", "groen licht", "ingestemd", "instem*", "geautoriseerd", "toegestaan", "fiat", "godkän*", "godkjen*", "godkend*", "tillstånd", "tillåt*", "samtyck*", "samtykk*", "tilladelse", "tillatelse", "(grönt|grønt) (ljus|lys)", "klartecken", "medgivande", "bifall*", "tillatt", "tilladt", "samþykk*", "leyfi", "heimil*", "hyväks*", "luvan", "suostu*", "valtuut*", "heaks kiit*", "nõusol*", "kinnita*", "loa", "apstiprin*", "atļauj*", "piekri*", "patvirtin*", "leid*", "sutik*",
	// Romance languages.
	"approuv*", "autoris*", "(son|leur|votre|mon|un|l') (accord|aval|consentement|assentiment)", "l'accord", "d'accord", "(accord|aval) (de|du|des)", "feu vert", "consenti*", "validé*", "(a|ont) accepté", "convenu", "permis de",
	"aprob*", "aprueb*", "autoriz*", "visto bueno", "(dio|dado|con) (su|el) (permiso|consentimiento|ok|aval|bendición)", "permiso (de|del|para|concedido)", "luz verde", "de acuerdo", "consinti*", "beneplácito", "aprov*", "sinal verde", "permissão", "concord*", "liberad*", "anuência", "aval", "approvat*", "approvazione", "via libera", "permesso", "consens*", "acconsent*", "d'accordo", "benestare", "nulla osta", "acord*", "undă verde", "încuviinț*", "permisiune*", "donat permís",
	// Slavic and Baltic languages, Hungarian, Greek, Turkish.
	"zatwierdz*", "zgod*", "zezwol*", "zaakceptow*", "zielone światło", "autoryzow*", "pozwol*", "przyzwol*", "schvál*", "souhlas*", "povol*", "zelenou", "odsouhlas*", "súhlas*", "odobr*", "dozvol*", "pristan*", "suglas*", "saglas*", "soglas*",
	"одобр*", "разреш*", "соглас*", "утверд*", "санкционир*", "(дал|дала|дали|дано) добро", "авториз*", "позвол*", "(зелёный|зеленый) свет", "благослов*", "допуск*", "схвал*", "дозвол*", "погодж*", "погоди*", "згод*", "затверд*", "зелене світло", "съглас*", "ухвал*", "дазвол*", "сагла*",
	"jóváhagy*", "engedély*", "hozzájárul*", "beleegyez*", "zöld utat", "εγκρί*", "ενέκριν*", "έγκρι*", "εγκεκρι*", "εξουσιοδ*", "συγκατάθ*", "συναίνε*", "άδεια", "συμφών*", "πράσινο φως", "onay*", "izin*", "izni*", "yetki*", "yeşil ışık", "kabul etti", "müsaade*", "rıza*", "muvafakat*", "miratua*", "miratim*", "leje*",
	// Semitic languages, Persian, languages of India, Africa and South-East Asia.
	"وافق*", "موافق*", "الموافق*", "بموافق*", "أذن", "إذن", "بإذن", "اعتمد*", "سمح*", "أجاز*", "صادق*", "تصريح", "אישר*", "אישור*", "באישור", "הסכ*", "אושר*", "רשות", "אור ירוק", "مورد تایید", "تایید*", "تأیید*", "اجازه*", "مجوز", "منظور*", "اجازت*",
	"मंजूर*", "मंज़ूर*", "अनुमति*", "स्वीकृ*", "अनुमोद*", "सहमत*", "इजाज़त*", "इजाजत*", "অনুমোদ*", "অনুমতি*", "সম্মতি*", "அனுமதி*", "ஒப்புதல்*", "ఆమోద*", "అనుమతి*", "मान्यता*", "परवानगी*", "ಅನುಮತಿ*", "ಅನುಮೋದ*", "അനുമതി*", "അംഗീക*", "અનુમતિ*", "મંજૂર*", "ਮਨਜ਼ੂਰ*",
	"อนุมัติ", "อนุญาต", "ยินยอม", "เห็นชอบ", "ไฟเขียว", "phê duyệt", "đồng ý", "cho phép", "chấp thuận", "ủy quyền", "bật đèn xanh", "setuju", "setujui", "disetujui", "menyetujui", "diizinkan", "mengizinkan", "persetujuan", "kelulusan", "diluluskan", "meluluskan", "kebenaran", "restu", "lampu hijau", "inaprub*", "pinayag*", "pahintulot", "pumayag", "idhini*", "ruhusa", "ameidhinisha", "imeidhinishwa", "kubali*", "ameruhusu", "ridhaa", "fọwọsi", "goedgekeur", "toegelaat", "amince*", "vume*", "imvume", "ጸድቋል", "ፈቃድ", "დამტკიც*", "ნებართვ*", "თანხმ*", "հաստատ*", "թույլտվ*", "համաձայն*", "бекіт*", "рұқсат*", "ruxsat*", "tasdiqla*", "təsdiq*", "icazə*",
	// Chinese, Japanese, Korean.
	"批准", "同意", "授权", "授權", "许可", "許可", "允许", "允許", "核准", "准许", "准許", "认可", "認可", "点头", "點頭", "放行", "赞成", "首肯", "答应", "恩准", "审批通过", "审核通过", "点了头", "拍板", "绿灯", "綠燈", "获准", "批复", "过审",
	"承認", "了承", "承諾", "合意", "ゴーサイン", "オーケーを", "okを", "okが", "okをもら", "お墨付き", "快諾", "裁可", "決裁", "승인", "허가", "동의", "허락", "허용", "인가", "승낙", "재가", "합의", "결재", "오케이",
)

// consents state one beside who gave it.
var consents = snippet.NewPhrases(
	"approv*", "(authorize|authorizes|authorise|authorises|authorizing)", "(authorization|authorisation|consent) (of|from|to|for|by)", "(allow|allows|allowed|allowing|permit|permits|permitted|accept|accepts|accepted|grant|grants|granted|confirm|confirms|confirmed|agree|agrees|agreed|okay|okays|ok|oks|bless|blessed|endorse|clears|cleared|sanction|waive|waives|validate|validated|nodded|acquiesced|acceded|assented|concurred|ratifies|vouched|delegated|empowered|entrusted|trusts|welcomed|supports|supported|backed)",
	"permission", "said (yes|ok|okay|sure|fine|it's ok|it is ok|it was ok|go)", "fine", "happy", "comfortable", "sign* off", "green*", "go-ahead", "thumbs*", "blessing", "signed", "affirmative", "yes", "let us", "lets us", "lifted", "dropped", "withdrew", "revoked", "suspended", "relaxed", "released", "freed", "excused", "exempted", "overr*", "(gave|gives|given) (in|way|free)",
	"bestätig*", "akzeptier*", "gab (sein|ihr) ok", "ja gesagt", "freig*", "accept*", "confirm*", "permett*", "permit*", "d'accord", "oui", "sí", "sim", "acept*", "aceit*", "conferm*", "accett*", "bevestig*", "geaccepteerd", "bekräft*", "bekreft*", "bekræft*", "potwierdz*", "potvrd*", "подтверд*", "принял*", "підтверд*", "прийня*", "onayla*", "kabul*", "确认", "確認", "说可以", "可以", "接受", "好的", "okと", "よいと", "いいと", "수락", "확인", "괜찮", "قبل*", "أكد*", "אמר כן", "स्वीकार*", "हाँ", "xác nhận", "setuju*", "menerima", "acuerdo", "agrément", "elfogad*", "megerős*", "vahvist*",
)

// wills state beside a user what the user said, wants or decided.
var wills = snippet.NewPhrases(
	"(said|says|told|tells|asked|asks|wants|wanted|want|requested|requests|instructed|instructs|ordered|orders|demanded|demands|decided|decides|insists|insisted|prefers|preferred|chose|chooses|wishes|wished|expects|expected|stated|states|wrote|mentioned|specified|directed|commanded|mandated|declared|announced|promised|suggested|suggests|advised|recommended|intends|intended|needs us|would like|would love|likes|ruled|opted|called for|gave|gives|made clear|explained|emphasised|emphasized|indicated|reiterated|clarified|corrected|corrects)", "(instruction|instructions|order|orders|directive|directives|demand|wish|verdict|ruling|mandate|command)",
	"(sagte|sagt|gesagt|will|wollte|möchte|wünscht|bat|gebeten|verlangt|verlangte|fordert|entschied|entschieden|angewiesen|beauftragt)", "(a dit|dit|veut|voulait|demande|a demandé|souhaite|exige|a décidé|préfère)", "(dijo|dice|quiere|quería|pidió|pide|solicitó|exige|decidió|prefiere|ordenó)", "(disse|diz|quer|queria|pediu|pede|solicitou|exige|decidiu|prefere)", "(ha detto|dice|vuole|voleva|ha chiesto|chiede|esige|ha deciso|preferisce)", "(zei|zegt|wil|wilde|vroeg|vraagt|eist|besloot)", "(sa|säger|vill|ville|bad|begärde|krävde|sagde|vil|ønsker|bestämde)", "(powiedział*|mówi|chce|chciał*|prosi*|żąda|zdecydował*)", "(сказал*|говорит|хочет|хотел*|просил*|попросил*|просит|требует|потребовал*|решил*|велел*|поручил*)", "(сказав|сказала|хоче|просив|попросив|вимагає|вирішив*|доручив)", "(söyledi|istiyor|istedi|talep etti|karar verdi|rica etti)",
	"要求", "希望", "想要", "决定", "指示", "表示", "说", "說", "吩咐", "请求", "と言", "要望", "依頼", "求め", "決め", "望ん", "말했", "원합", "원한", "요청", "지시", "결정", "부탁", "قال", "طلب", "يريد", "قرر", "أمر", "אמר", "ביקש", "רוצה", "החליט", "कहा", "चाहता", "चाहते", "माँग", "निर्णय", "บอก", "ต้องการ", "ขอ", "nói", "muốn", "yêu cầu", "quyết định", "berkata", "ingin", "meminta", "memutuskan", "alisema", "anataka",
)

// actors are those whose consent counts.
var actors = snippet.NewPhrases(
	"(user|users|human|humans|customer|customers|client's owner|owner|owners|operator|operators|admin|admins|administrator|administrators|maintainer|maintainers|reviewer|reviewers|manager|managers|management|boss|supervisor|stakeholder|stakeholders|principal|ceo|cto|ciso|vp|legal|compliance|leadership|headquarters|everyone|everybody|the client|our client|team lead|tech lead|product owner|security team|the team|whole team|security|the board|committee|the person|requester|requestor|the author)",
	"nutzer*", "benutzer*", "anwender*", "kunde", "kunden", "kundin", "chef", "chefin", "inhaber*", "besitzer*", "auftraggeber*", "betreiber*", "vorgesetzte*", "utilisat*", "le client", "la cliente", "du client", "propriét*", "responsable", "usuari*", "usuári*", "cliente", "clientes", "dueñ*", "propietari*", "jefe", "jefa", "utent*", "proprietari*", "capo", "utilizador*", "dono", "chefe", "gebruiker*", "klant", "eigenaar", "baas", "användar*", "ägar*", "bruger*", "bruker*", "eier*", "ejer*", "käyttäj*", "asiakas", "omistaj*", "notand*", "kasutaj*", "lietotāj*", "naudotoj*",
	"użytkowni*", "klient*", "właściciel*", "szef*", "uživatel*", "zákazn*", "majitel*", "používate*", "korisni*", "uporabni*", "пользовател*", "заказчик*", "клиент*", "владел*", "начальник*", "руковод*", "администратор*", "користувач*", "замовник*", "клієнт*", "власник*", "потребител*", "корисни*", "карыстальн*", "kullanıcı*", "müşteri*", "sahibi", "yönetici*", "patron", "felhasznál*", "ügyfél*", "tulajdonos*", "utilizator*", "clientul", "proprietarul", "χρήστη*", "πελάτη*", "ιδιοκτήτη*", "përdorues*",
	"用户", "用戶", "客户", "客戶", "使用者", "主人", "老板", "老闆", "业主", "负责人", "管理员", "领导", "上级", "维护者", "ユーザ", "利用者", "お客", "顧客", "オーナー", "依頼者", "管理者", "上司", "責任者", "사용자", "고객", "유저", "소유자", "관리자", "담당자", "المستخدم*", "العميل*", "المالك*", "المدير*", "המשתמש*", "הלקוח*", "הבעלים", "המנהל", "उपयोगकर्ता*", "ग्राहक*", "यूज़र*", "मालिक*", "ব্যবহারকারী*", "பயனர்*", "వినియోగదారు*", "ผู้ใช้", "ลูกค้า", "เจ้าของ", "người dùng", "khách hàng", "chủ sở hữu", "pengguna", "pelanggan", "pemilik", "mtumiaji", "mteja", "mmiliki", "کاربر*", "مشتری*", "صارف*", "gumagamit", "მომხმარებ*", "օգտատեր*", "пайдаланушы*", "foydalanuvchi*", "istifadəçi*",
)

// addressed are the user in the words of an agent that speaks to the user.
var addressed = snippet.NewPhrases(
	"(you|you've|you'd)", "your (earlier|own|clear|explicit|last|first|)", "du", "ihr habt", "tu (m'as|as)", "vous (m'avez|avez)", "usted", "tú", "você", "ты", "вы", "ти", "ви", "sen", "siz", "你", "您", "あなた", "당신",
)

// orders state an instruction or an agreement of nobody: who gave it, the user's own words must
// show.
var orders = snippet.NewPhrases(
	"as (requested|instructed|ordered|directed|demanded|wished|desired|commanded)", "(on|upon|by) (request|demand|order)", "(standing|direct|explicit|clear|written|verbal) (order|orders|instruction|instructions)", "(instruction|instructions|order|orders|directive|mandate) (is|are|was|were) (to|that)",
	"(i|we) (was|were|am|are) (told|asked|instructed|ordered|directed|allowed|permitted|cleared|entitled|free)", "(was|were|has been|is) (granted|accepted|decided together)", "(settled|agreed) on", "(he|she|they) (told|asked|instructed|urged) (us|me) to", "(he|she|they) (wants|want|wanted) (it|us|this|that|the)", "(following|per) (user|customer|client|owner) (guidance|direction|directions|advice|wishes|input)", "as far as the (user|customer|owner|boss) is concerned", "(me|nos) (dijiste|pediste|dijo|pidió)", "(mi|ci) (hai|ha) (detto|chiesto|dato)",
	"(it|this|that) (was|is|has been|had been) (settled|resolved|ruled|determined|understood|ordered)", "wie (gewünscht|verlangt|angewiesen|beauftragt)", "auf (wunsch|anweisung|anordnung|geheiß)", "comme (demandé|souhaité)", "à la demande", "sur (ordre|demande)", "según lo (pedido|solicitado)", "por (orden|indicación)", "a petición", "conforme (solicitado|pedido)", "a pedido", "come richiesto", "su richiesta", "zoals gevraagd", "op verzoek", "på begäran", "zgodnie z (prośbą|poleceniem|życzeniem)", "na (prośbę|polecenie|życzenie)", "на (pokyn|žádost)", "na žádost", "по (просьбе|требованию|указанию|поручению|распоряжению)", "за (вказівкою|проханням)", "isteği üzerine", "talimatıyla", "talebi üzerine",
	"按要求", "按照要求", "应要求", "遵照指示", "奉命", "ご要望どおり", "ご指示", "依頼どおり", "指示により", "요청대로", "지시에 따라", "بناء على طلب", "بناءً على طلب", "לפי בקשת", "के अनुरोध पर", "के कहने पर", "theo yêu cầu", "(atas|sesuai) permintaan", "ตามคำขอ", "ตามคำสั่ง",
)

// discussions state an agreement of nobody by name, in each language that has a word for consent.
var discussions = snippet.NewPhrases(
	"as (agreed|discussed|arranged|settled)", "(per|under) our (agreement|discussion|chat|call|conversation|arrangement)", "wie (besprochen|vereinbart|abgesprochen|abgemacht|ausgemacht)", "(laut|gemäß) (absprache|vereinbarung)", "zoals (besproken|afgesproken|overeengekomen)", "volgens afspraak",
	"som (överenskommet|överenskommits|avtalat|diskuterat|bestämt|vi kom överens)", "enligt (överenskommelse|avtal)", "som (aftalt|avtalt|drøftet|diskuteret|diskutert|besluttet)", "ifølge (aftale|avtale)", "(eins og|líkt og) (rætt|samið)", "kuten (sovittiin|sovittu|puhuttiin|keskusteltiin|olemme sopineet)", "nagu (kokku lepitud|arutatud|leppisime)", "kā (norunāts|vienojāmies|runāts)", "kaip (sutarta|susitarta|kalbėta)",
	"comme (convenu|discuté|entendu|prévu ensemble)", "como (se habló|se acordó|hablamos|acordamos|quedamos|convenido|acordado|combinado|conversado|discutido|combinamos)", "(según|conforme) (lo |o |)(acordado|hablado|convenido|combinado|discutido)", "come (concordato|discusso|stabilito|convenuto|d'accordo)", "com (hem quedat|acordat|vam parlar)", "(așa cum|după cum|precum) (am|s-a) (discutat|convenit|stabilit|vorbit)", "conform (înțelegerii|discuției)",
	"(jak|zgodnie z tym, co) (ustalono|uzgodniono|umówiono|ustaliliśmy|uzgodniliśmy|omówiono|omówiliśmy)", "zgodnie z (ustaleniami|umową|rozmową)", "(jak|tak jak) (bylo|jsme) (dohodnuto|domluveno|dohodli|domluvili|probráno|probrali)", "(dle|podle|podľa|po|prema) (dohody|domluvy|dogovoru|dogovora)", "ako (bolo|sme) (dohodnuté|dohodli|sa dohodli)", "(kako|kao što|kot) (je|smo|smo se) (dogovoreno|dogovorjeno|dogovorili)",
	"как (договорились|договаривались|обсуждали|обсуждалось|оговорено|условились|решили вместе)", "по (договорённости|договоренности|договору)", "як (домовились|домовилися|домовлялися|обговорювали|погодили)", "за домовленістю", "както (се уговорихме|беше договорено|обсъдихме|се разбрахме)", "(како|као) (што смо|је) (договорили|договорено)", "όπως (συμφωνήθηκε|συμφωνήσαμε|συζητήθηκε|συζητήσαμε|είπαμε|μιλήσαμε)", "ahogy (megbeszéltük|megállapodtunk|egyeztettük|megegyeztünk)", "(megbeszélés|megállapodás) szerint", "(konuştuğumuz|konuşulduğu|anlaştığımız|anlaşıldığı|kararlaştırıldığı|kararlaştırdığımız) (gibi|üzere)", "siç (u ra dakord|u bisedua)", "razılaşdığımız kimi",
	"经商定", "(按照|按|如|照)(约定|商定|讨论|商量)", "(说|談|谈|商量)好的", "(話し合った|相談した|約束した|決めた|話した)(通り|とおり)", "(相談|約束|打ち合わせ)(通り|どおり)", "(논의한|논의된|상의한|약속한|이야기한|합의한|협의한) 대로", "كما (اتفقنا|ناقشنا|تم الاتفاق|نوقش)", "(حسب|وفق) الاتفاق", "(כפי|כמו) (שסוכם|שהוסכם|שדובר|שדיברנו)", "כמוסכם", "(طبق|بنا بر) توافق", "(जैसा|जैसे) (तय|कि तय)", "चर्चा के अनुसार", "như đã (thống nhất|thảo luận|bàn|thỏa thuận)", "(sesuai|seperti) (kesepakatan|yang disepakati|yang dibahas|pembicaraan|dibincangkan)", "ตามที่(ตกลง|คุย)", "kama tulivyokubaliana",
)

// indifferences state that somebody has nothing against a thing, with their negation.
var indifferences = snippet.NewPhrases(
	"(niets|geen bezwaar|geen bezwaren) (ertegen|tegen)", "geen bezwaar", "(inget|ingenting|inga invändningar) (emot|mot)", "(intet|ingenting|ikke noget|ikke noe|noe) (imod|imot)", "(ei|mitään) vastaan", "(rien|pas) contre", "aucune objection", "pas d'objection*", "(nada|nenhuma objeção) (contra|a)", "nada en contra", "sin objeciones", "sem objeções", "(nulla|niente) in contrario", "nessuna obiezione", "nimic împotriva", "nimic împotrivă",
	"nie (ma|mają|miał|miała|mieli) nic przeciwko", "(nic|ničeho) proti", "bez námitek", "nič proti", "ništa protiv", "ничего (не имеет|не имел|не имела|не имеют) против", "не (против|возражает|возражают|возражал|возражала|заперечує|проти)", "нищо против", "(nincs|nem volt) (ellenvetés*|kifogás*)", "nem bánja", "(itirazı|itiraz) yok", "δεν έχει (αντίρρηση|πρόβλημα)", "καμία αντίρρηση",
	"(没有|沒有|无|無|没)(异议|異議|意见|意見)", "不(反对|反對|介意)", "異議(なし|はない|はありません|がない)", "反対(しない|しなかった|はなかった|はない)", "이의(가|는|) 없", "반대하지 않", "لا (مانع|يمانع|يعترض|اعتراض)", "(אין|ללא) התנגדות", "(कोई|किसी) आपत्ति नहीं", "không phản đối", "tidak keberatan", "ไม่ขัดข้อง", "ไม่คัดค้าน",
)

// blankets are consents to anything: the user's own words must have them.
var blankets = snippet.NewPhrases("carte blanche", "(free|full) (rein|hand|authority)", "blanket (approval|permission|authority)")

// oppositions state a consent where nobody has one.
var oppositions = snippet.NewPhrases("objection*", "(objected|objects|object|oppose|opposed|opposes) (to|it|this|that|the|when)", "(concern|concerns) (was|were|from|voiced|raised)", "objected", "minded", "minds", "mind", "(is|was|were|are|been|be|anything|not|nothing) against", "(problem|problems|issue|issues|quarrel|trouble) with", "care (if|about|whether)", "care less")

// A question that nobody has to ask is a consent: one is near a word for what is optional, or
// a negated one for what is necessary.
var (
	questions = snippet.NewPhrases("confirm*", "approv*", "permission", "consent", "sign-off", "signoff", "asking", "authori*", "review", "rückfrage*", "nachfrage*", "bestätigung*", "freigabe*", "zustimmung*", "erlaubnis", "accord", "autoris*", "aprob*", "permiso", "aprov*", "permissão", "conferma", "bevestiging", "toestemming", "potwierdz*", "zgod*", "подтвержд*", "согласован*", "разрешен*", "onay*", "确认", "批准", "许可", "請示", "请示", "確認", "承認", "許可", "확인", "승인", "허락")
	necessary = snippet.NewPhrases("needed", "required", "mandatory", "nötig", "erforderlich", "notwendig", "nécessaire*", "requise*", "hace falta", "necesari*", "necess*", "nodig", "nödvändig*", "potrzebn*", "wymagan*", "нужн*", "треб*", "gerek*")
	optional  = snippet.NewPhrases("unnecessary", "needless", "superfluous", "optional", "skippable", "can be skipped", "nicht länger nötig", "überflüssig", "entfällt", "entfallen", "plus (nécessaire|besoin|requise)", "inutile", "innecesari*", "desnecess*", "não é mais necess*", "non (è|serve) più", "niet meer nodig", "overbodig", "nie jest już potrzebn*", "zbędn*", "(gerek|gerekli) (yok|değil)", "gerekmiyor", "不再需要", "无需", "不需要", "不必", "必要ありません", "不要です", "不要に", "필요없", "필요 없", "필요하지 않")
)

// modals say what somebody can do.
const modals = `can|cannot|may|might|must|should|will|können|kann|sieht|peut|peuvent|voit|puede|pueden|ve|pode|podem|può|possono|kunnen|kan|могут|может|może|mogą|může`

// Words around a person, a consent or a wish.
var (
	// leading are words between the beginning of a clause and its subject.
	leading = snippet.Set(`the our my this that your his their as and so then also now later finally initially explicitly today earlier afterwards meanwhile decided: yes ok since because but however mid-session both even
		der die das dem den des unser unsere mein meine und aber auch le la les el los l' il lo gli i o os a as de het en een och og i w z na u notre nuestro nosso il nostro`)
	// everyday is what stands behind a name where a program is described, or a plain act.
	everyday = lazyregexp.New(`^(?:'s)?\s*(?:\p{L}+ly |also |then |first |later |now |just |had |has |have |did )?(?:of (?:the|an?|this|each|every) (?:\p{L}+ )?|no |an? )?(?:` +
		// nouns
		`modules?|services?|carts?|avatars?|fights?|factory|controller|component|seed|repository|query|handler|count|limit|tables?|ids?|names?|fields?|columns?|records?|rows?|models?|interface|input|story|stories|agents?|accounts?|sessions?|data|base|space|groups?|roles?|profiles?|settings?|messages?|edits?|files?|changes|content|prompts?|lines?|list|events?|flow|side|code|guide|docs|documentation|facing|errors?|experience|manual|precedence|endpoint|service|page|view|object|type|class|struct|library|api|app|schema|store|config|device|key|token|password|email|branch|home|directory|machine|system|locale|language|timezone|retry|retries|` +
		// acts that ask for nothing
		`is viewing|is currently|edits|reverts|commits|deletes|creates|clicks|types|enters|opens|sees|runs|makes|made|stashes|stashed|splits|keeps|did|committed|retries|logs|signs|gets|receives|uploads|uploaded|selects|visits|shared|noted|notes|pointed|reported|reports|provided|raised|identified|acknowledged|interrupted|continued|began|started|moved|was|pasted|mentioned|asked (?:me )?(?:about|if|whether|what|how|why|which|where|who|when)|asks (?:about|if|whether|what|how|why)|feedback|follow-up|insight|explains|explained|clarification|clarifications|interactions?|question|questions|` + modals + `)(?:$|[^\p{L}])`)
	// roles are names of persons and of parts of programs: with an article they are persons.
	roles = snippet.Set(`client human humans reviewer reviewers operator operators admin admins administrator principal legal compliance security supervisor everyone everybody management manager owner`)
	// reversing are words between a negation and a consent that make it a consent again.
	reversing = snippet.Set("need needs require requires want wants await awaits deny denied withhold withheld refuse refused revoke revoked withdraw withdrawn lack lacks brauchen braucht benötigt verweigert")
	// unopposed ends in a negation of what follows, of which nobody is the subject.
	unopposed = lazyregexp.New(`(?:^|[^\p{L}])(?:not|no|nobody|none|never|without|nothing|\p{L}+n't)\s(?:[\p{L}']+\s){0,4}$`)
	question  = lazyregexp.New(`^(?:asked|asks)\s(?:me\s|the agent\s|the user\s)?(?:about|if|whether|what|what's|how|why|which|where|who|when)(?:$|[^\p{L}])`)
)

// licences state a consent of nobody by name: that the agents may do a thing, or that somebody
// said yes, confirmed that it may be done, or let it pass.
var licences = lazyregexp.New(`^(?:(?:` + strings.Join([]string{
	`(?:agents?|assistant) (?:is|are|was|were) (?:now )?(?:allowed|permitted|free|cleared|entitled) to`, `(?:we|i) (?:may|are allowed to|am allowed to|were allowed to|got to)`, `(?:said|says|told (?:us|me)|replied|answered)(?: that)?(?: (?:it is|it's|it was|we|i|you))? (?:yes|ok|okay|fine|sure|can|may|could)`,
	`confirmed(?: that(?: \S+){1,6} (?:can|may)|:)`, `(?:has|have|had) (?:blessed|okayed|cleared|approved|signed)`, `(?:waved|waves|nodded|signed|passed) (?:[^.;:!?,]{1,40} )?(?:through|off)`, `given a pass`, `the (?:nod|green light|go)`, `(?:cool with|(?:fine|okay|ok) by) (?:them|him|her|the \p{L}+|it|this|that|\p{L}+ing)`,
	`(?:permission|sign-off|signoff|approval|clearance|consent|go-ahead|okay|ok|go) (?:to|for|on) [^.;:!?]{1,60}: *(?:yes|ok|okay|granted|given|done|complete|received|obtained)`, `(?:sign-off|signoff|approval|permission|consent): *(?:complete|done|yes|granted|given|received|obtained)`,
	`no (?:need|reason) to ask`, `(?:at|by|on|upon|per) (?:the |an? |explicit )*(?:user|client|customer|owner|boss|manager|admin|operator)s?'?s? (?:explicit |express )?(?:request|wish|order|behest|demand|instruction|desire|command)`, `(?:by|on) (?:order|request|behest) of (?:the )?(?:user|client|customer|owner|boss|manager|admin|operator)`,
	`(?:requirement|request|order|wish|demand|instruction)s? (?:from|of|by) (?:the )?(?:user|client|customer|owner|boss|manager)`, `(?:user|client|customer|owner|boss) (?:requirement|request|order|wish|demand|instruction|permission|approval)s?:`,
	`(?:wir dürfen|ich darf|man darf|auf (?:bitte|wunsch|anweisung|geheiß) (?:des|der|vom|von)|d(?:as|er|ie) (?:okay|ok|go|freigabe|erlaubnis|zusage)(?: (?:zum|zur|für|von) [^.;:!?]{1,60})? (?:kam|kommt|ist da|liegt vor|steht)|es wurde bestätigt, dass)`,
	`(?:nous pouvons|on peut|on a le droit|on (?:nous|m')a dit (?:oui|que)|c'est confirmé|à la demande d[eu])`, `(?:podemos|(?:nos|me) dijeron que sí|(?:nos|me) (?:han dicho|dijeron)|a petición d)`, `(?:temos permissão|disseram que sim|a pedido d[oa])`, `(?:possiamo|ci hanno detto|su richiesta d)`,
	`(?:we mogen|ik mag|op verzoek van)`, `(?:vi får|jag får|vi kan|vi må|på begäran av)`, `(?:możemy|wolno nam|na prośbę)`, `(?:můžeme|smíme)`, `(?:нам можно|мне можно|можем|мне сказали, что|нам сказали, что|по просьбе|добро на|добро [^.;:!?]{0,40}(?:получено|есть|дали))`, `(?:нам можна|можемо)`, `(?:saamme|voimme)`,
	`(?:يمكننا|لدينا الضوء|سمحوا|قالوا)`, `(?:מותר לנו|אמרו לנו)`, `(?:chúng (?:tôi|ta) (?:có thể|được phép))`, `(?:kami|kita) (?:boleh|bisa|dapat)`,
}, "|") + `)(?:$|[^\p{L}])|(?:我们|我們|咱们|我)(?:现在|現在)?(?:可以|能|得以)|[说說](?:[^。，]{0,6})?(?:可以|没问题|沒問題|行)|(?:ても|で)(?:よい|いい|良い)(?:と|って)|のokが|okが出|(?:해|어|아|여|워)도 (?:된다|좋다|괜찮다)(?:고|는))`)

// licensed is how far a licence may reach, in bytes.
const licensed = 200

// licenceHeads begin one.
var licenceHeads = snippet.NewPhrases("(agent|agents|assistant) (is|are|was|were)", "(we|i) (may|am|are|were|got|mogen)", "said", "says", "told", "replied", "answered", "confirmed", "confirmed that", "(has|have|had) (blessed|okayed|cleared|approved|signed)", "waved", "waves", "nodded", "signed", "passed", "given a pass", "the (nod|green light|go)", "cool with", "(fine|okay|ok) by", "(permission|sign-off|signoff|approval|clearance|consent|go-ahead|okay|ok|go) (to|for|on)", "(sign-off|signoff|approval|permission|consent)", "no (need|reason)",
	"(at|by|on|upon|per) (the|an|explicit|user*|client*|customer*|owner*|boss*|manager*|admin*|operator*|order|request|behest)", "(requirement|requirements|request|requests|order|orders|wish|wishes|demand|demands|instruction|instructions) (from|of|by)", "(user|client|customer|owner|boss) (requirement*|request*|order*|wish*|demand*|instruction*|permission*|approval*)",
	"wir dürfen", "(ich|man) darf", "auf (bitte|wunsch|anweisung|geheiß)", "(das|der|die) (okay|ok|go|freigabe|erlaubnis|zusage)", "es wurde", "nous pouvons", "on (peut|a|nous|m'a)", "c'est", "à la", "podemos", "(nos|me) (dijeron|han)", "a (petición|pedido)", "temos", "disseram", "possiamo", "ci hanno", "su richiesta", "ik mag", "op verzoek", "(vi|jag) (får|kan|må)", "på begäran", "możemy", "wolno", "na prośbę", "můžeme", "smíme", "(нам|мне) (можно|можна|сказали)", "можем", "по просьбе", "добро", "можемо", "saamme", "voimme", "يمكننا", "لدينا", "سمحوا", "قالوا", "מותר", "אמרו", "chúng", "kami", "kita",
	"我们", "我們", "咱们", "我", "说", "說", "てもよ", "てもい", "ても良", "でよ", "でい", "で良", "のok", "ok", "해도", "어도", "아도", "여도", "워도")

// licensedEnding ends a verb that says in Turkish what we may do.
const licensedEnding = "biliriz"

var (
	// lifts end a ban or a duty.
	lifts = snippet.NewPhrases(
		"(no longer|not|n't|hardly|never) (a |an |any |)(problem|issue|risk|harm|off limits|off-limits|forbidden|banned|prohibited|required|needed|necessary|mandatory|binding|protected|frozen|restricted|applies|apply|applicable|in force|in effect|valid|needs|have to|has to|need to)", "no longer", "any more", "anymore", "lifted", "ended", "expired", "obsolete", "outdated", "waived", "dropped", "relaxed", "void", "moot", "superseded", "overridden", "only for (last|this) (week|time|sprint|release)", "was only", "were only", "used to",
		"optional", "skippable", "nicety", "nice to have", "harmless", "poses no", "fair game", "up for grabs", "free to", "open for", "can wait", "without (a |any |)(question|questions|asking|review|notice|approval)", "no (question|questions|approval|confirmation|review|need)", "right away", "ask later", "exempt*", "exception*", "unless", "instead of asking",
		"nicht mehr", "nicht länger", "kein* (problem|risiko)", "aufgehoben", "entfällt", "hinfällig", "überholt", "ohne rückfrage*", "darf weg", "kann weg", "freigegeben", "erledigt",
		"ne (plus|pose)", "plus (interdit*|protégé*|nécessaire*|obligatoire*|besoin)", "levé*", "désormais", "sans (demander|poser)", "ya no", "ya se puede", "levantad*", "sin preguntar", "não é mais", "já pode", "liberad*", "non è più", "ora", "niet meer", "opgeheven", "inte längre", "ikke længere", "ikke lenger", "już (nie|można)", "zniesion*", "už (lze|není|ne)", "zrušen*",
		"больше не", "снят*", "отменен*", "отменён*", "можно", "теперь можно", "более не", "більше не", "тепер можна", "можна", "знято", "artık", "már nem", "már", "feloldva", "enää", "voi nyt",
		"不再", "解除", "取消", "已经可以", "随意", "隨意", "没有问题", "没问题", "沒問題", "没关系", "无需", "無需", "不必", "放开", "现在可以", "現在可以", "もう", "問題ない", "問題ありません", "大丈夫", "解除", "不要になった", "構わない", "かまわない", "더 이상", "해제", "괜찮", "이제", "문제없", "문제 없", "لم يعد", "الآن", "قابل", "رفع", "עכשיו", "כבר לא", "अब", "giờ", "không còn", "sekarang", "tidak lagi", "แล้ว", "ได้",
	)
	// permits allow something, unless they are negated.
	permits = snippet.NewPhrases(
		"may", "can", "could", "might", "allow*", "permit*", "permissible", "acceptable", "accept*", "tolerable", "tolera*", "fine", "ok", "okay", "all right", "alright", "welcome", "safe", "safely", "good to", "possible", "editable", "writable", "deletable", "free", "ready (to|for)", "will be", "goes", "go out", "wait", "approved", "happily", "feel free",
		"kann", "können", "darf", "dürfen", "erlaubt", "zulässig", "möglich", "okay", "in ordnung", "geht", "unkritisch", "peut", "peuvent", "pouvons", "(permis|permise|permises)", "autoris*", "acceptable*", "possible*", "puede*", "pueden", "podemos", "permitid*", "pode", "podem", "permitid*", "può", "possono", "permess*", "modificabile", "mag", "mogen", "kan", "toegestaan", "får", "kan", "går bra", "tillåt*", "må", "tilladt", "tillatt", "można", "dozwolon*", "wolno", "lze", "může*", "povolen*", "môže*", "može*", "dovoljen*", "можем", "можете", "разреш*", "допустим*", "дозволен*", "може*", "lehet", "szabad", "-ható", "voi", "saa", "sallit*", "poate", "permis", "μπορ*", "επιτρέπ*",
		"可以", "允许", "允許", "能", "てもよ", "てもい", "でもよ", "でもい", "できる", "可能", "てよい", "ても", "해도", "어도", "아도", "여도", "워도", "가능", "수 있", "يمكن", "مسموح", "يجوز", "אפשר", "מותר", "ניתן", "सकता", "सकते", "सकती", "có thể", "được phép", "boleh", "bisa", "dapat", "สามารถ",
	)
	// abilities are words whose ending says that something may be done, where it is no word of its own.
	abilities = lazyregexp.New(`\p{L}{3,}(?:[ıiuü]l|n)?(?:abilir|ebilir|ylebilir|ható|hető)`)
	// clearances say in the order "now … may" that something changed.
	clearances = lazyregexp.New(`(?:^|\s)(?:jetzt|nun|maintenant|ahora|agora|adesso|nu|teraz|nyní|теперь|тепер|şimdi|now)(?:$|[\s.,])`)
	// denials negate a permission beside them.
	denials = lazyregexp.New(`(?:^|[^\p{L}])(?:not|never|n't|\p{L}+n't|cannot|no|none|only|nicht|nie|niemals|kein\p{L}*|ne|pas|jamais|no|nunca|não|non|mai|niet|nooit|geen|inte|aldrig|ikke|aldri|nie|nigdy|ne|nikdy|не|нельзя|никогда|не|ні|nem|soha|ei|älä|değil|لا|لن|ليس|אסור|לא|नहीं|không|đừng|jangan|tidak)(?:$|[^\p{L}])|不|禁|勿|ない|いけ|なら|ません|않|마세|안\s|못|ไม่|ห้าม`)
)

// identifiers are names in code: calls, members of calls, names of two or three parts.
var identifiers = lazyregexp.New(`[\p{L}_$][\w$]*(?:(?:\.|::|->)[\w$]+)*\(|\b[A-Za-z]+(?:_[A-Za-z]+){1,2}\b|\b[A-Za-z]?[a-z]+[A-Z]\w*\b|\b[A-Z][a-z]+(?:\.[a-z]\w*)+\b`)

// programs are nouns of what runs, and of what it works on.
const programs = `server|servers|replica|replicas|broker|peer|peers|compiler|linter|parser|validator|scheduler|job|jobs|worker|workers|bot|proxy|firewall|filter|policy|engine|gateway|router|balancer|endpoint|api|apis|interface|schema|type|types|checker|check|test|tests|suite|build|pipeline|ci|handshake|protocol|` +
	`lock|lease|flag|header|field|column|form|page|browser|database|cache|queue|consumer|consumers|producer|driver|kernel|library|function|method|module|service|services|script|hook|handler|middleware|cors|node|nodes|leader|follower|token|retry|invoice|order|orders|request|requests|refund|step|everything|regex|` +
	`nachtjob|bestellungen|rechnungen|schnittstelle|dienst|feld|formular|serveur|serveurs|interface|service|fonction|servidor|servidores|servicio|función|serviço|função|servizio|funzione|usługa|serwer|сервер|серверы|сервис|функция|sunucu`

var (
	// programSubject is a clause whose subject is a program, up to a verb of it.
	programSubject = lazyregexp.New(`^\W*(?:(?:the|a|an|both|all|each|every|its|this|our|der|die|das|le|la|les|el|los|las|o|os|il|de|het) |l')?(?:[\p{L}\w/.-]+ ){0,2}?(?:` + programs + `)(?: (?:now|also|then|only|always|\p{L}+ly))? ?$|(?:接口|服务器|服務器|函数|系统|客户端|伺服器|サーバー?|関数|クライアント|システム|서버|함수|시스템|클라이언트|الخادم|השרת)(?:は|が|는|은|이|가|\s)?$`)
	// byProgram is who did it, behind a consent.
	byProgram = lazyregexp.New(`^\s?by (?:the |an? )?(?:[\p{L}'-]+ ){0,2}(?:` + programs + `)(?:$|[^\p{L}])`)
	// ready is a word for what was approved before its noun.
	ready = lazyregexp.New(`^(?:approved|allowed|accepted|authorized|confirmed|freigegebene|genehmigte) (?:` + programs + `) (?:are|is|get|gets|go|goes|have|has|land|landen|move|moves|werden|wird)(?:$|[^\p{L}])`)
	// anyone ends before a person in general: each user, when the user …
	anyone = lazyregexp.New(`(?:^|[^\p{L}])(?:an?|any|each|every|several|many|both|\d+|one|two|three|some|of|to|(?:when|whenever|if|once|lets|asks|that|where|while|until) (?:the|an?|any|each))\s$`)
	// present is a verb of what a program does, behind the word for a client, an owner, or more than one.
	present = lazyregexp.New(`^(?:'s)? (?:[\p{L}]+ly |now |then |also |always |never )?(?:(?:http|web|redis|sql|rest|api|grpc|mqtt|smtp|tcp) )?(?:[a-z]+s|\p{Latin}+(?:t|nt|a|an|am|e|en|ar|er|as|ren|ą)|ي\p{Arabic}+|\p{Cyrillic}+(?:ет|ит|ют|ят|ется|ится|ются|ятся))(?:$|[^\p{L}])`)
	// several are words for more than one person with whom a program has to do, or for a part of one.
	several = lazyregexp.New(`^(?:users|humans|customers|owners|clients|usuarios|usuários|clientes|utilisateurs|utenti|gebruikers|użytkowni(?:cy|ków|kami)|пользователи|пользователей|клиенты|користувачі|kullanıcılar|användare|brugere|brukere|benutzer|nutzer|kunden|kundi)$|^(?:the client|client|cliente|le client|klient|klienten|клиент|клієнт|العميل|owner|operator|boss|admin|manager)`)
)

var (
	// client is a person or a program.
	client = lazyregexp.New(`client|klient|клиент|клієнт|العميل`)
	// personal are present verbs of persons.
	personal = lazyregexp.New(`^\s(?:\p{L}+ly |now |also )?(?:is|are|was|has|agrees|approves|permits|will|hat|haben|est|sont|es|son|är|est|согласен|согласна|accepte|acepta|aceita|accetta|akceptiert|bestätigt|godkänner|akceptuje|zgadza|подтверждает|принимает|разрешает|يوافق|يسمح)(?:$|[^\p{L}])`)
	// parts are what a program has of a person, and what it does with one.
	parts = lazyregexp.New(`^\s[=<>+*/%!&|]+\s|^'s \p{L}+ (?:is|are|has|have|gets|was) (?:\p{L}+ed|in|at|on|the|a|an|not)(?:$|[^\p{L}])|^ (?:of|von|de|du|del|do|di) (?:(?:the|an?|each|el|la|le|o|il|der|dem|des) )?(?:` + programs + `|row|file|record|table|key)(?:$|[^\p{L}])|^ (?:\p{L}+ )?se \p{L}+`)
	// place says where in the data somebody is.
	place = lazyregexp.New(`^ (?:in|i|im|w|en|em|nel|dans|без|из|в|without|with|ohne|sin|sem|sans|utan|bez) `)
)

// Words around what somebody says.
var (
	able = lazyregexp.New(`^ (?:` + modals + `)(?:$|[^\p{L}])`)
	// cites follows a discussion that can be read: "as discussed in #12".
	cites = lazyregexp.New(`^ (?:in|above|below|under|at|here|on (?:the )?(?:page|issue|ticket|wiki|mailing)|im|in der|oben|dans|en el|en la|ci-dessus|plus haut|arriba)(?:$|[^\p{L}])`)
	// sourced ends in words before the source of a sentence: "according to".
	sourced = lazyregexp.New(`(?:^|[^\p{L}])(?:according to|laut|gemäß|nach (?:aussage|wunsch|angabe) (?:von|der|des|vom)|selon|d'après|según|segundo|secondo|volgens|enligt|ifølge|według|zdaniem|podle|podľa|prema|по словам|со слов|за словами|според|potrivit|conform|σύμφωνα με|theo|menurut|据|據|根据|根據)\s?(?:(?:the|our|dem|der|den|l|le|la|el|o|a|il|de|het) |l')?$`)
	// settings state a consent as the value of a name.
	settings = lazyregexp.New(`(?:^|[^\p{L}_])(?:(?:user|owner|client|customer|admin|manager|human)[._])?(?:approv(?:al|ed)|consent(?:ed)?|authori[sz](?:ed|ation)|sign_?off)(?:_(?:status|state|given|granted|by_user))? ?(?:=|==|:=) ?["']?(?:true|yes|granted|given|ok|okay|approved|1)(?:$|[^\p{L}])`)
	// requested states that a request is somebody's.
	requested = lazyregexp.New(`(?:request|order|idea|decision|instruction|demand|wish)s? [^.;:!?]{0,60}?((?:came|comes|stems|is|was) (?:straight |directly )?from the (?:user|customer|owner|boss|manager|operator))(?:$|[.,;:!?)])`)
	// byName is an order of somebody by name alone.
	byName = lazyregexp.New(`(?:^|[.!?:;(] |and |but |that |because )(\p{Lu}\p{Ll}+ (?:(?:said|says) to|(?:told|asked|instructed) (?:us|me) to))(?:$|[^\p{L}])`)
)
