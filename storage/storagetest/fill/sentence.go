package fill

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"stoa/protocol"
)

// A sentence is a template whose gaps are filled by chance: a word of the
// vocabulary ({w}, or {W} with a capital), a city ({c}), a person ({p}), a number
// ({n}).
type sentence struct {
	parts []string // text and gaps in turn; a gap is one letter
	words int
}

// sentences reads templates, one a line.
func sentences(lines string) (all []sentence) {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		s := sentence{words: len(strings.Fields(line))}
		for i, part := range strings.FieldsFunc("\x00"+line, func(c rune) bool { return c == '{' || c == '}' }) {
			if i == 0 {
				part = strings.TrimPrefix(part, "\x00")
			}
			s.parts = append(s.parts, part)
		}
		all = append(all, s)
	}
	return all
}

// write fills a sentence.
func (w *writer) write(b *strings.Builder, r *rand.Rand, s *sentence) {
	for i, part := range s.parts {
		if i%2 == 0 {
			b.WriteString(part)
			continue
		}
		switch part {
		case "w":
			b.WriteString(Word(w.words.rank(r.Float64())))
		case "W":
			b.WriteString(capital(Word(w.words.rank(r.Float64()))))
		case "c":
			b.WriteString(often(r, Cities))
		case "p":
			b.WriteString(capital(firstNames[r.IntN(len(firstNames))]))
		case "n":
			b.WriteString(strconv.Itoa(2 + r.IntN(98)))
		}
	}
}

// titles are of posts, by kind and language.
var titles = map[protocol.PostKind][2][]sentence{
	protocol.Requirement: {sentences(`
		Looking for {w} {w} in {c}
		Wanted: {w} and {w}
		{n} kg of {w}, with or without {w}
		Who sells {w} {w} near {c}?
		Need {w} and {w} for {w} workshop`), sentences(`
		{c} में {w} और {w} चाहिए
		{w} {w} कौन बेचता है?
		{n} किलो {w} चाहिए`)},
	protocol.Ability: {sentences(`
		{W} {w} made to order
		I repair {w}, {w} and {w}
		{W} and {w} lessons in {c}
		{W} {w} by {p} of {c}`), sentences(`
		{w} और {w} का काम, {c}
		हाथ से बना {w} {w}
		{w} सिखाते हैं, {w} भी`)},
	protocol.Challenge: {sentences(`
		Can anybody make {w} without {w}?
		{W} {w} from {w} alone
		Who can match this {w} {w}?`), sentences(`
		{w} की चुनौती: सिर्फ़ {w} से
		{w} {w} कौन बना सकता है?`)},
	protocol.Resolution: {sentences(`
		Found: {w} {w} from {c}
		{W} and {w} did it
		Settled with {w} {w}, thanks to {p}`), sentences(`
		मिल गया: {w} {w}
		{p} जी के {w} से काम बन गया`)},
	protocol.Offer: {sentences(`
		{W} {w}, {n} left
		Fresh {w} and {w} this week
		{W} and {w} from {c}
		{W} {w} for ₹{n}, {w} free`), sentences(`
		ताज़ा {w} और {w}, {c} से
		{w} {w}, सिर्फ़ ₹{n}`)},
	protocol.QuestionPost: {sentences(`
		Which {w} for {w} {w}?
		Where to buy {w} and {w} in {c}?
		How long does {w} {w} last?
		{W} or {w} for a small {w}?`), sentences(`
		{w} और {w} कहाँ मिलेगा?
		{w} के लिए कौन-सा {w} अच्छा है?`)},
	protocol.Announcement: {sentences(`
		{W} and {w} market in {c} on Sunday
		New {w} {w} has come
		Closed next week, {w} and {w} by post`), sentences(`
		{c} में {w} और {w} का मेला
		नया {w} {w} आ गया`)},
}

// english and hindiText are what texts continue with.
var (
	english = sentences(`
		We keep {w}, {w} and {w}.
		The {w} is {w} {w} from {c}.
		{W} with {w}, no {w}.
		Ask {p} about {w}, {w} and {w}.
		{W} {w} at ₹{n}, {w} {w} at ₹{n}.
		No {w}, please, only {w} or {w}.
		The last {w} came with {w} and {w}.
		We bring {w} and {w} to {c}.
		{W} dries in {n} hours, {w} in {n}.
		{W} and {w} go well with {w}.
		Good {w}, fair price for {w} {w}.
		Send a photo of your {w} and {w}.
		Bring {w}, {w} and {w}; tea is ours.
		{W} {w}, {w} {w} and some {w}.
		Since {p} left for {c}, {w} and {w} are mine.
		Small {w}, large {w}, any {w}.`)
	hindiText = sentences(`
		हमारे पास {w}, {w} और {w} है।
		{c} से {w} और {w} आता है।
		यह {w} हाथ में अच्छा लगता है, {w} से भी।
		दाम {w} के हिसाब से, {w} {w} अलग।
		{p} जी से {w} और {w} पूछ लीजिए।
		काग़ज़, {w} और {w} साथ में।
		{w} नहीं, सिर्फ़ {w} या {w}।
		{n} दिन में {w} और {w} पहुँचा देंगे।`)
	headlines = sentences(`
		{W} and {w} in {c}
		{W} {w}, made in {c}
		{W}, {w} and {w} for {c}
		{n} years of {w} and {w}
		{c} का {w} और {w}`)
	names = sentences(`
		{W} {w}
		{W} and {w}
		{W} for {w}
		{W} {w} {w}
		{w} वाला {w}`)
)

// title is the title of a post.
func (w *writer) title(r *rand.Rand, kind protocol.PostKind, hindi bool) string {
	of := titles[kind][0]
	if hindi {
		of = titles[kind][1]
	}
	return w.drawSentence(r, of)
}
