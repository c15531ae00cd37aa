package fill

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// Sizes of the vocabulary. The words that the sentences are filled with follow
// Zipf's law: the first is in five posts of six, the hundredth in two of a
// hundred, the last in some of a hundred thousand.
const (
	Words = 50_000
	Tags  = 2000
)

// What people trade and do comes first, so that what is read says something.
var realWords = strings.Fields(`paper cotton indigo silk tea rice wood brass thread linen clay dye rug carpet pottery block print silver glass honey oil
	soap spice coffee mango lamp candle mirror furniture chair table shelf book binding ink calligraphy painting frame photo camera drone video
	website translation editing accounting tax music sitar tabla dance yoga kitchen repair design studio workshop lesson teacher travel guide taxi
	courier transport storage packing rental garden plant seed compost solar battery pump engine bicycle scooter gear saddle basket bamboo cane rope
	jute wool felt button zip needle loom shuttle pattern collar sleeve shawl sari kurta scarf blanket quilt pillow curtain apron towel napkin tray
	kettle samovar cup plate bowl jar bottle spoon ladle knife grinder oven tandoor pickle chutney jaggery ghee curd paneer millet lentil pepper
	cardamom turmeric ginger garlic tamarind jasmine rose marigold neem tulsi sandalwood incense varnish lacquer plaster tile brick marble granite
	slate chisel hammer anvil lathe kiln wheel bell drum flute harmonium strap sandal purse satchel wallet belt`)

// parts are joined in pairs to the words that no list has enough of; they read
// like the names of goods ("copperlamp").
var parts = strings.Fields(`copper lamp tea river silk stone moon basket salt bird amber wheel rain thread gold leaf smoke bowl hill ring snow
	bell corn boat fern glass dusk drum clay feather mint rope sun quilt oak comb fox plate sea lantern fig hook ash mirror palm kite dew chest
	jade spoon wind shawl plum gate pearl cart frost brush lotus tile sand flute moss crown ivy clock coral ladle dawn tray pine knot reed crate
	lake bead elm sickle star mat peach chain fog purse lime anchor cloud jar berry bench flint fan mango blade creek shelf rose trunk earth
	cup olive saddle night hinge melon ladder east coin birch kettle dune cradle honey arrow lily stool marsh button grape loom field
	thimble grass barrel cedar pot bay needle clover chisel vine funnel peak tassel heron pan ember sieve lark cord valley pestle iris bucket
	north candle walnut rake dove frame tide buckle apple awning wolf ribbon cave bolster lemon harp spring nail pepper drawer swan
	veil cliff mortar poppy spindle tiger lock meadow dial basil oar cloak hawk griddle almond easel owl bridle storm jug maple tongs grove
	stamp crane censer barley peg otter sash island whisk sparrow anvil west banner deer trowel lotion camel vase hazel skein koel pulley
	delta screen parrot hamper orchid vat mist tripod plain gong cherry hatch turtle bobbin south mallet bison latch willow flask`)

// Word is the word of a rank, from 0, the most frequent, to Words-1. Ranks have
// words of their own.
func Word(rank int) string {
	if rank < len(realWords) {
		return realWords[rank]
	}
	first, apart := (rank-len(realWords))%len(parts), (rank-len(realWords))/len(parts)
	return parts[first] + parts[(first+1+apart)%len(parts)]
}

// Tag is the tag of a rank, from 0 to Tags-1.
func Tag(rank int) string {
	if rank < 20 {
		return [...]string{"paper", "cotton", "indigo", "repair", "design", "teaching", "food", "transport", "wood", "metal", "music", "garden",
			"web", "legal", "travel", "print", "dye", "pottery", "books", "energy"}[rank]
	}
	return Word(len(realWords)+rank) + "-" + strconv.Itoa(rank%10)
}

// capital is a word as it begins a sentence.
func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// text makes sentences of about least to most words.
func (w *writer) text(r *rand.Rand, least, most int) string {
	return w.sentences(r, inHindi(r), least, most)
}

// inHindi draws the language of a text: one in eight is in Hindi.
func inHindi(r *rand.Rand) bool { return r.IntN(8) == 0 }

// sentences are a text in one language.
func (w *writer) sentences(r *rand.Rand, hindi bool, least, most int) string {
	var b strings.Builder
	from := english
	if hindi {
		from = hindiText
	}
	for words, want := 0, least+r.IntN(most-least+1); words < want; {
		s := &from[r.IntN(len(from))]
		if words > 0 && words+s.words > most {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		w.write(&b, r, s)
		words += s.words
	}
	return b.String()
}

// drawSentence draws one of the sentences and fills it.
func (w *writer) drawSentence(r *rand.Rand, of []sentence) string {
	var b strings.Builder
	w.write(&b, r, &of[r.IntN(len(of))])
	return b.String()
}

// drawTags draws up to most different tags, mostly few.
func (w *writer) drawTags(r *rand.Rand, most int) []string {
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
