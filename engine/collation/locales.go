package collation

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// locale is one that MongoDB knows: what the tables call it, and what holds for it where a client does not say.
type locale struct {
	tag           string // "" if the tables do not have it
	caseFirst     string
	shifted       bool
	normalization bool
	backwards     bool
}

// plain are the locales whose name is their tag.
const plain = `af am ar az be bg bs ca cs cy da de dz ee el en eo es et fa fil fo fr ga ha haw he hr hu hy id ig is it ja kk kl ko lb ln lt lv mk ms
	mt nb nl nn om pl ps pt ro ru se sk sl sq sr sv sw to tr uk ur wae yo zh zu as bn gu hi km kn kok ml mr my ne or pa si ta te th vi`

// named are those that the tables call otherwise.
var named = map[string]string{
	"bs_Cyrl": "bs-Cyrl", "de@collation=phonebook": "de-u-co-phonebk", "de_AT": "de-AT", "de_AT@collation=phonebook": "de-u-co-phonebk",
	"en_US": "en-US", "en_US_POSIX": "en-US-u-va-posix", "fa_AF": "fa-AF", "fi": "fi-u-co-standard", "fi@collation=traditional": "fi",
	"fr_CA": "fr-CA", "ln@collation=phonetic": "ln-u-co-phonetic", "sr_Latn": "sr-Latn", "zh_Hant": "zh-Hant",
}

// refused are MongoDB's locales that the tables do not have, or have in another order.
const refused = `bo chr dsb gl hsb ka ky lkt lo mn smn ug yi`

// normalized are the locales for which the tables of MongoDB ask for normalization. Here text is always normalized; it is what is shown.
const normalized = `as bn gu hi km kn kok ml mr my ne or pa si ta te th vi`

// findLocale finds the locale called id.
func findLocale(id string, spec bson.Raw) (locale, error) {
	l := locale{caseFirst: caseOff, normalization: isIn(normalized, id)}
	switch id {
	case "":
		return l, mongoerr.BadValue.Errorf("Field 'locale' cannot be the empty string in: %s", show(spec))
	case "da", "mt":
		l.caseFirst = caseUpper
	case "fr_CA":
		l.backwards = true
	case "th":
		l.shifted = true
	}
	if isIn(plain, id) {
		l.tag = id
		return l, nil
	}
	if tag, ok := named[id]; ok {
		l.tag = tag
		return l, nil
	}
	base, variant, _ := strings.Cut(id, "@collation=")
	if isIn(refused, base) || variant != "" && known(base) {
		return l, mongoerr.NotImplemented.Errorf("the locale '%s' is not implemented: %s", id, show(spec))
	}
	for near := id; ; {
		i := strings.LastIndexAny(near, "_@-")
		if i < 0 {
			return l, mongoerr.BadValue.Errorf("Field 'locale' is invalid in: %s", show(spec))
		}
		if near = near[:i]; known(near) {
			return l, mongoerr.BadValue.Errorf("Field 'locale' is invalid in: %s. Did you mean '%s'?", show(spec), near)
		}
	}
}

func known(id string) bool { return isIn(plain, id) || named[id] != "" }

func isIn(list, id string) bool {
	for s := range strings.FieldsSeq(list) {
		if s == id {
			return true
		}
	}
	return false
}
