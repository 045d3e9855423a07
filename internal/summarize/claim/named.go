package claim

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// headBytes is the largest distance of a name from the beginning of its clause.
const headBytes = 60

// isNamed reports that a clause is about a person: the name at [from, to) heads it, or follows a word such as
// "per". Clauses about a program and its users do not count: a plural, a part of a name, a noun of programs
// or an everyday act after it.
func isNamed(lower string, from, to int) bool {
	if !heads(lower[:from]) || strings.HasSuffix(lower[from:to], "users") || roles[lower[from:to]] && !strings.HasSuffix(lower[:from], "the ") {
		return false
	}
	word, unspaced := wordEnd(lower, to), strings.ContainsFunc(lower[from:to], snippet.Unspaced)
	rest := lower[word:]
	switch {
	case utf8.RuneCountInString(lower[to:word]) > 3 && !unspaced: // a compound
		return false
	case rest != "" && strings.IndexByte("-_/.@`", rest[0]) >= 0 && len(rest) > 1 && rest[1] != ' ':
		return false
	case unspaced:
		return !unspacedNoun().MatchString(lower[to:])
	}
	return !everyday().MatchString(rest)
}

// ofThing reports a noun of programs after a person: "the user id".
func ofThing(rest string) bool { return everyday().MatchString(rest) && !able().MatchString(rest) }

// wordEnd returns the end of the word around a place.
func wordEnd(s string, at int) int {
	for at < len(s) {
		r, w := utf8.DecodeRuneInString(s[at:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		at += w
	}
	return at
}

// heads reports that a text ends at the beginning of a clause, apart from an article, an adverb or words for
// a source ("according to the").
func heads(before string) bool {
	cut := len(before) <= headBytes
	before = before[max(0, len(before)-headBytes):]
	if i := strings.LastIndexAny(before, ".;:!?,(—–\"*\n。，、：；"); i >= 0 {
		_, w := utf8.DecodeRuneInString(before[i:])
		before, cut = before[i+w:], true
	} else if i := strings.LastIndex(before, " - "); i >= 0 {
		before, cut = before[i+3:], true
	}
	if strings.HasSuffix(before, "-") || strings.HasSuffix(before, "_") || strings.HasSuffix(before, "/") || strings.HasSuffix(before, "<") || strings.HasSuffix(before, "`") {
		return false
	}
	all := strings.Fields(strings.TrimSuffix(before, "l'"))
	if n := len(all); n > 0 && sources[all[n-1]] || n > 1 && sources[all[n-2]] || n > 2 && sources[all[n-3]] {
		return true
	}
	return cut && len(all) <= 3 && !slices.ContainsFunc(all, func(w string) bool { return !leading[w] && w[0] < 0x80 })
}

var (
	// sources are words before the source of a sentence.
	sources = snippet.Set(`per by with von mit par avec por com da con door przez av af according laut gemäß selon d'après según segons secondo segundo conforme volgens enligt ifølge według podle zdaniem согласно слов göre за`)
	// unspacedNoun is a noun of programs after a name, in scripts without spaces.
	unspacedNoun = lazyregexp.New(`^ー?\s?(?:が存在|がいない|が見つ|が未|表|名|数据|資料|登录|登入|界面|id|管理|模型|组|组件|权限|信息|列表|认证|端|输入|可以|テーブル|データ|画面|登録|認証|一覧|情報|モデル|入力|ガイド|테이블|이름|목록|인증|정보|화면|모델|입력|들)`)
)
