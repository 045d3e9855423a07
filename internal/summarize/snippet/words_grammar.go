package snippet

import (
	"compactd/internal/lazyregexp"
)

// How languages forbid. A line is one language, or several with the same negation. In a list
// "x-" is the beginning of a word and "-x" the end.

// heads begin a clause that forbids, unless the word behind them states a fact.
var heads = negations{
	// French, South Slavic languages, Hungarian.
	{not: newShapes("ne n'- nemoj nemojte nemojmo немој немојте"), facts: newShapes(`marche fonctionne passe va répond sait sais comprend comprends suis sont peut peux veut veux vois voit trouve trouvais
		n'est n'a n'ai n'ont n'avais n'avait n'était n'y n'arrive n'existe n'importe n'en radi rade znam znaš mogu može vidim razumem razumijem sjećam sećam treba postoji dela vem morem vidim deluje razumem tudom`)},
	// Italian, Spanish, Catalan, Portuguese.
	{not: newShapes("non"), facts: newShapes(`funziona funzionano so sa ho hai ha abbiamo è era sono posso può capisco riesco riesce va vanno c'è ci vedo trovo ricordo parte compila solo importa penso credo mi male vuole basta null ascii utf zero empty blocking breaking trivial existent`)},
	{not: newShapes("no"), facts: newShapes(`funciona funcionan sé se puedo puede entiendo hay es era encuentro encuentra tengo tiene veo recuerdo creo importa arranca compila pasa he ha está estoy sirve quiere me problem worries idea`)},
	{not: newShapes("não nao"), facts: newShapes(`funciona funcionam roda rodou sei sabe consigo consegue posso pode é era foi entendo entendi há tem tenho tinha vejo achei acho encontrei lembro compila passa abre aparece existe está estou estava precisa dá deu quero sou só vi importa me -ou`)},
	{not: newShapes("nu"), facts: newShapes(`merge mergea este e era sunt știu stiu pot poate funcționează functioneaza am are a au văd vad înțeleg inteleg cred mai știe găsesc trebuie chiar are är har kan ska fungerar går vet blir ser kör hebben is werkt gaat kan`)},
	// Germanic languages.
	{not: newShapes("nicht"), facts: newShapes(`schlecht so ganz sicher wirklich schlimm nötig gut nur mehr dass alle alles jeder das die der wahr übel unbedingt mein meine`)},
	{not: newShapes("niet"), facts: newShapes(`zo echt zeker nodig alles goed gevonden erg alleen iedereen mijn`)},
	{not: newShapes("ikke inte ekki"), facts: newShapes(`sikker sikkert noe nødvendigt nødvendig så helt säker konstigt konstig bra alla alt alle min noget viss`)},
	{not: newShapes("moenie moet"), facts: newShapes("")},
	// Slavic and Baltic languages.
	{not: newShapes("не"), facts: newShapes(`работи -ает -яет -ует -ит -ет -ся -аю -яю -ую -ю -жу -чу -у -ли -ло -ла -ил -ал -ел -ял -ыл -ог -шел -ёл -ёт -ат -ят -ют -ут -ам -ем -им -ає -ює -їть -ить -ить -ав -ив -їв -но так то тот та те все всё мой баг суть знам мога виждам разбирам помня е са съм става тръгва можем видим знаем ради раде могу може видим разумем`)},
	{not: newShapes("nie"), facts: newShapes(`działa działają wiem wie mam ma mamy mogę może widzę rozumiem jest są był była było pamiętam chodzi chce udało -am -em -ę -ał -ała -ało -ali -ają -uje idzie kompiluje startuje fungujú noch wieder mehr gesehen gehört war hat bin`)},
	{not: newShapes("ne-ej ne-ejte ne-uj ne-ujte ne-ň ne-ňte ne-ž ne-žte ne-š ne-šte ne-ď ne-ti ne-t ne-piš ne-íš ne-ěj ne-ř ne-ři ne-kej ne-aj ne-ajte ne-ujme ne-em ne-iš neinstaluj nepiš nemaž nepreme-"), facts: newShapes(`nej- neviem nemám nemam nevím nejde není nie nechápem nerozumiem nesnáším nevidím nesedí nejdem net next nest newest neat nebudem nemôžem nemůžem nevidíš nevíš nerozumíš`)},
	{not: newShapes("ne-o ne-ā ne-k ne-kit ne-kite ne-site ne-ciet ne-iec ne-ini ne-dzēs ne-auc ne-ieci ne-lieto ne-maini nemaini ne-raksti neraksti nelieto"), facts: newShapes("neck network necesito negro neutro nero neo ne-lo nestrādā nezinu nevaru neredzu")},
	// Finnish, Estonian, Greek, Albanian, Swahili.
	{not: newShapes("älä älkää älköön ära ärge μην μη mos usi-e msi-e"), facts: newShapes("")},
	// Hebrew, Arabic, Persian.
	{not: newShapes("אל"), facts: newShapes("")},
	{not: newShapes("لا"), facts: newShapes("تعمل يعمل أعرف أعلم أفهم أستطيع يوجد توجد أرى تزال يزال بأس مشكلة يمكن أدري")},
	// Vietnamese, Indonesian, Filipino.
	{not: newShapes("đừng chớ cấm huwag jangan janganlah"), facts: newShapes("lo")},
	{not: newShapes("không"), facts: newShapes("chạy biết hiểu thấy có phải sao thể đúng hoạt rõ nhớ còn mở vào được tìm")},
	// Chinese: the verb is joined to it.
	{not: newShapes("别- 請別- 请别- 也别- 千万别- 先别- 你别- 都别- 别再- 勿- 请勿- 請勿- 不可- 不许- 不許-"), facts: newShapes("别的- 别人- 别名- 别扭- 别说- 别急- 别担心- 别客气- 不可能- 不可思- 别处-")},
}

// lasts end a clause that forbids, unless the word before them states a fact.
var lasts = negations{
	{not: newShapes(`silme dokunma değiştirme kullanma yapma ekleme yazma kurma çalıştırma dağıtma bozma taşıma açma kapatma gönderme yükleme düzenleme güncelleme kaldırma oluşturma başlatma pushlama commitleme birleştirme atlama bırakma unutma
		-mayın -meyin -mayınız -meyiniz -mayalım -lama -leme -tırma -tirme -türme -turma -dırma -dirme -ştirme -ştırma`), facts: newShapes("bir bu hızlı iyi ollama llama")},
	{not: newShapes("न मत करें- ना"), facts: newShapes("")},
	{not: newShapes("না নেই- নয়"), facts: newShapes("করছে জানি হচ্ছে পারছি পাচ্ছি বুঝি করে হয় চলছে বুঝছি")},
	{not: newShapes("-ாதே -ாதீர்கள் வேண்டாம் கூடாது"), facts: newShapes("")},
	{not: newShapes("نکن نزن نده نبر نگذار نذار ننویس نساز نریز نکنید نزنید ندهید نبرید نگذارید ننویسید نسازید"), facts: newShapes("")},
	{not: newShapes("-ないで -ないでね -ないでくれ -ないこと -るな -すな -くな -うな -ぶな -むな -つな -ぬな -ぐな"), facts: newShapes("")},
}

// bansBehind negate the verb that begins the clause, unless that is no imperative.
var bansBehind = negations{
	{
		newShapes("nicht nichts kein keine keinen keinem keiner niemanden"), newShapes(`das dies dieses diese dieser es ich du er sie wir ihr die der den dem ein eine einen mein meine man jetzt heute hier da dann noch gar leider warum wieso wenn weil ob aber gestern auch so also
		habe hab bin kann weiß weiss sehe seh verstehe versteh finde glaube glaub war waren will wollte konnte hatte wurde würde möchte mag denke denk brauche ja nein komme krieg kriege bekomme schon mir mich nur bisher davon dort in im auf bei mit nach von zu zum was wer wo wie alles alle ist sind tests fehler seite -en -ung`),
		newShapes(`lädt startet läuft geht klappt stimmt funktioniert passt existiert kompiliert baut hängt weiterhin hilft reicht laufen gehen starten klappen`),
	},
	{newShapes("niet niets geen niemand"), newShapes(`dat dit het ik je jij hij ze zij we wij jullie de een mijn nu vandaag hier daar dan nog waarom als omdat maar ook zo dus weet kan heb ben zie snap begrijp vind wil was waren had wilde kon denk ja nee die er wat wie waar hoe alles in op bij met van is zijn tests -t -en`), newShapes(`werkt lukt start bouwt laadt helpt klopt draait werken`)},
	{newShapes("inte inget ingen inga ikke intet ingenting"), newShapes(`det detta den de jag du han hon vi ni jeg hun i det den dette nu idag här där då ännu än varför varför hvorfor om men också så alltså vet ved kan har är er ser förstår forstår förstod var hade kunde vill vil ville tror tänker skjønner ja nej nei som vad hva hvad allt alt här her der tester -ade -de -ar -ker -rer -ger -ter virker fungerar fungerer går gick gik kommer står finns finnes findes`), newShapes(`-ar -er går vet är har kan`)},
	{newShapes("pas rien aucun aucune plus jamais"), newShapes(`je j'ai tu il elle on nous vous ils elles ce c'est cela ça ca ici alors mais encore toujours sais vois peux veux comprends marche fonctionne pourquoi si que qui le la les un une des mon ma mes en de du y a est non oui même presque surtout et ou où au aux dans par pour sur avec les -ent -ait -é -ons -s'est`), newShapes("marche fonctionne passe va démarre charge")},
	{newShapes("no nothing none"), newShapes(`i i'm i've it it's he she they we you there there's this that these those the a an my our your his her its their is are was were has have had does do did can could will would should there in on at of for with by from to if when since because as so now still has got gets found saw see sees seen says said
		why what who which how where almost practically basically apparently really obviously probably yes no oh well nope sorry not only unfortunately actually tests absolutely with or just then maybe -ed -s -ly -ing`), newShapes("has have is are was were had got shows show")},
}

// bansByName begin a later clause that bans a thing by name.
var bansByName = Set(`no nobody nothing none kein keine keinen niemand nichts aucun aucune ningún ninguna nenhum nenhuma nessun nessuna geen inga inget ingen никаких żadnych`)

// clauseWords begin a clause.
var clauseWords = Set(`and but so und aber sondern et mais pero ma maar ale oraz и но але och men og`)

// fillers may stand before the first word of a clause.
var fillers = Set(`please pls and but also so then just ok okay oh hey again now or yes kindly absolutely claude
	bitte und aber auch also dann doch nur s'il te plaît et mais aussi donc por favor y pero también e mas também per favore ma anche alsjeblieft graag en maar ook
	proszę a ale i też пожалуйста и а но также ещё будь ласка але також lütfen ve ama prosím ale taky kérlek és de te rog și dar παρακαλώ και αλλά vui lòng xin hãy tolong och men snälla og men vær så snill ja ole hyvä molim te i hoi`)

// ban is the head of a clause that bans a thing by name: "And no force pushes, please."
var ban = lazyregexp.New(`^[\s\p{P}]*(?:(?:and|but|also|so|then|please|absolutely|again|oh|ok|und|auch|bitte|et|aussi|y|e|en)[ ,]+){0,2}` +
	`(?:no|nobody|no one|nothing|none|zero|not (?:a single|one|any|a word)|keine[nrsm]?|kein|niemand|nichts|pas de?|aucune?|plus de|nada de|ning[uú]na?|ningún|nenhuma?|nessuna?|niente|geen|ing(?:a|en|et)|никаких|никакого|żadn(?:ych|ego)|žádn[éá])(?:\s|')\S`)

// statesFact matches a fact that begins like a ban: a person or a time in it, a verb of a
// fact, or a thing that nobody bans.
var statesFact = lazyregexp.New(`(?:^|[^\p{L}])(?:i|i'm|i've|it|it's|he|she|they|there's|is|isn't|are|was|were|has|had|did|does|works?|worked|happen(?:s|ed)|failed|passed|changed|helps|helped|found|left|so far|yet|this time|today|now|any ?more|` +
	`idea|problem|problems|luck|worries|clue|doubt|wonder|need|reason|rush|hurry|thanks|matter|change|difference|response|reply|answer|news|` +
	`sé|puedo|acuerdo|entiendo|encuentro|encuentra|recuerdo|veo|tengo|arranca|ich|es|ist|sind|war|waren|hat|hatte|ahnung|problème|idée|est|sont|hay|es|son|funciona|idea)(?:$|[^\p{L}])`)

// A clause forbids that ends in an infinitive behind one of these, in German and Dutch, unless it
// has a finite verb: "Die Tests nicht löschen."
var (
	infinitiveNot = newShapes("nicht nichts kein- niet niets geen")
	infinitive    = newShapes("-en -ern -eln")
	finite        = newShapes(`ich wir es sie er kann können konnte konnten wollen wollte wollten will werden wird würde würden wurde wurden haben habe hat hatte hatten sind war waren möchte möchten laufen gefunden
		ik wij we het kunnen kan konden wilde wilden willen zijn hebben heeft zal zullen`)
)
