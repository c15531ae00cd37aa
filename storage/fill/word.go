package fill

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// Sizes of the vocabulary. By Zipf's law the first word stands in nearly every
// post, the hundredth in some of a hundred, the last in some of a hundred thousand.
const (
	Words = 50_000
	Tags  = 2000
)

// Real words come first, so that what is read looks like something.
var realWords = strings.Fields(`paper cotton for with and from hand made by looking need sheets की fresh new best local this week
	price small order quality dyed indigo में delivery sample samples natural block print हाथ wood carved brass silver thread
	woven linen rug carpet pottery clay काग़ज़ blue green red white black large quick repair service design studio workshop
	teacher lessons music sitar tabla dance yoga kitchen spice tea coffee मसाला rice mango honey oil soap candle lamp glass mirror
	furniture chair table shelf book binding printing ink calligraphy painting frame photo camera drone video editing website
	translation Hindi हिन्दी English Tamil Kannada Bengali Marathi writing editor accounting tax advice legal travel guide taxi
	driver courier transport storage packing rental house garden plants seeds compost solar battery pump engine bicycle scooter`)

var syllables = strings.Fields(`ba be bi bo da de di do ga ge gi go ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro sa se si so ta te ti to`)

// Word is the word of a rank, from 0, the most frequent, to Words-1. Ranks have
// words of their own.
func Word(rank int) string {
	if rank < len(realWords) {
		return realWords[rank]
	}
	n := len(syllables)
	return syllables[rank%n] + syllables[rank/n%n] + syllables[rank/n/n%n] + "x"
}

// Tag is the tag of a rank, from 0 to Tags-1.
func Tag(rank int) string {
	if rank < 20 {
		return [...]string{"paper", "cotton", "indigo", "repair", "design", "teaching", "food", "transport", "wood", "metal", "music", "garden",
			"web", "legal", "travel", "print", "dye", "pottery", "books", "energy"}[rank]
	}
	return Word(len(realWords)+rank) + "-" + strconv.Itoa(rank%10)
}

// text makes sentences of from least to most words.
func (w *writer) text(r *rand.Rand, least, most int) string {
	var b strings.Builder
	n := least + r.IntN(most-least+1)
	for i := range n {
		word := Word(w.words.rank(r.Float64()))
		if i%12 == 0 && word[0] >= 'a' && word[0] <= 'z' {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
		switch {
		case i == n-1 || i%12 == 11 && n > 12:
			b.WriteString(". ")
		default:
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// line is a text of one line without an end.
func (w *writer) line(r *rand.Rand, least, most int) string {
	return strings.TrimRight(w.text(r, least, most), ".")
}

// some draws up to most different tags, mostly few.
func (w *writer) some(r *rand.Rand, most int) []string {
	tags := []string{}
	for range r.IntN(most + 1) {
		if t := Tag(w.tags.rank(r.Float64())); !strings.Contains(" "+strings.Join(tags, " ")+" ", " "+t+" ") {
			tags = append(tags, t)
		}
	}
	return tags
}

// of is the source of chance of the thing of a number, whatever was made before.
func (w *writer) of(what uint64, n int) *rand.Rand {
	return rand.New(rand.NewPCG(w.Seed<<8|what, uint64(n)))
}
