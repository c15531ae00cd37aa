package proof

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/pow"
)

// Three honest texts of the same trade, and one in Hindi.
var (
	offer    = "We print 200 sheets of hand-made paper a week in Jaipur and look for a shop in Bengaluru that would sell them. Samples by post, price on request."
	wanted   = "Looking for a printer in Jaipur: 500 wedding cards on cotton paper, two colours, needed before the tenth of December. Please send a quote."
	question = "Does anybody know a workshop in Bengaluru that repairs paper cutting machines of the eighties? Ours has a broken clutch."
	hindi    = "जयपुर में हाथ से बना कागज़ चाहिए, दो सौ पन्ने हर हफ़्ते, नमूना डाक से भेजें और दाम बताएं।"
)

func TestText_Likeness(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, a, b string
		alike      bool
	}{
		{"itself", offer, offer, true},
		{"case, spaces, punctuation", offer, strings.ToUpper(strings.ReplaceAll(offer, " ", " - ")), true},
		{"another number", offer, strings.Replace(offer, "200", "350", 1), true},
		{"other words", offer, strings.NewReplacer("Jaipur", "Mysuru", "week", "month").Replace(offer), true},
		{"a code at the end", offer, offer + " ref 7Q-2291", true},
		{"Hindi with another number", hindi, strings.Replace(hindi, "दो सौ", "तीन सौ", 1), true},
		{"short, but for a mark", "Is it still free?", "Is it still free", true},
		{"another offer of the trade", offer, wanted, false},
		{"a question", wanted, question, false},
		{"another language", offer, hindi, false},
		{"another Hindi text", hindi, "बेंगलुरु में किसी को पुरानी छपाई मशीन ठीक करने वाला मिस्त्री पता है? कृपया संपर्क करें।", false},
		{"emoji", "👍👍👍", "🎉🎉", false},
		{"nothing", "", offer, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			other := NewText(tt.b)
			n := NewText(tt.a).like(&other.marks)
			require.Equal(t, tt.alike, n >= alikeFrom, "%d of %d marks", n, marks)
		})
	}
}

// TestText_HonestTexts finds no likeness among many different long texts over the
// same words.
func TestText_HonestTexts(t *testing.T) {
	t.Parallel()
	words := strings.Fields(offer + " " + wanted + " " + question)
	var texts []*Text
	for i := range 200 {
		var b strings.Builder
		for j := range 60 {
			b.WriteString(words[mix(uint64(i*1000+j))%uint64(len(words))] + " ")
		}
		texts = append(texts, NewText(b.String()))
	}
	for i, a := range texts {
		for _, b := range texts[:i] {
			require.Less(t, a.like(&b.marks), alikeFrom)
		}
	}
}

func priced() *Issuer {
	return New(Config{Master: []byte("0123456789abcdef"), Audience: "a.example", Target: 1000})
}

// price is the level at which a text gets in from a network; it pays it.
func price(t *testing.T, i *Issuer, network, s string) int {
	t.Helper()
	text := NewText(s)
	c := i.Issue("board", network)
	if !i.Covers(c.Parameters, network, text) {
		c = i.Harder(c.Parameters, "board", network, text)
		require.True(t, i.Covers(c.Parameters, network, text), "one round trip is enough")
	}
	i.Paid(network, c.Parameters, text)
	return c.Hint.Level
}

func TestPrice_RisesWithRepetitionAndFalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := priced()
		var levels []int
		for n := range 9 {
			levels = append(levels, price(t, i, fmt.Sprint("net", n), strings.Replace(offer, "200", fmt.Sprint(200+n), 1)))
		}
		require.Equal(t, []int{2, 3, 4, 4, 4, 5, 5, 5, 5}, levels, "the same text from many networks")
		for _, honest := range []string{wanted, question, hindi} {
			require.Equal(t, 2, price(t, i, "honest", honest), "others stay cheap")
		}
		time.Sleep(30 * time.Minute)
		require.Equal(t, 3, price(t, i, "late", offer), "the price falls")
		time.Sleep(3 * time.Hour)
		require.Equal(t, 2, price(t, i, "later", offer), "and the text is forgotten")
	})
}

func TestPrice_OneNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := priced()
		var levels []int
		for range 5 {
			levels = append(levels, price(t, i, "one", hindi))
		}
		require.Equal(t, []int{2, 4, 6, 7, 7}, levels, "a network pays for its own repetition as well, up to the top, and still gets in")
		time.Sleep(3 * time.Hour)
		require.Equal(t, 2, price(t, i, "one", hindi))
	})
}

func TestPrice_ShortTextsRecur(t *testing.T) {
	t.Parallel()
	i := priced()
	for n := range 20 {
		require.Equal(t, 2, price(t, i, fmt.Sprint("net", n), "Is it still free?"))
	}
	require.Equal(t, 3, price(t, i, "net1", "Is it still free?"), "from the same network they count")
}

func TestHarder(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := New(Config{Master: []byte("0123456789abcdef"), Audience: "a.example", Now: func() time.Time { return now }})
	text, other := NewText(offer), NewText(wanted)
	i.Paid("a", pow.Parameters{}, text)
	i.Paid("a", pow.Parameters{}, other)

	low := solve(t, i.Issue("board", "b"))
	_, p, err := i.Check(context.Background(), []byte(low.Encode()), "board", "n")
	require.NoError(t, err)
	require.False(t, i.Covers(p, "b", text))
	hard := i.Harder(p, "board", "b", text)
	require.Greater(t, hard.Hint.Level, 2)
	require.True(t, i.Covers(hard.Parameters, "b", text))

	_, _, err = i.Check(context.Background(), []byte(low.Encode()), "board", "n")
	require.Error(t, err, "one solved challenge asks once")

	for range 100 {
		i.Paid("c", pow.Parameters{}, text)
		i.Paid("c", pow.Parameters{}, other)
	}
	require.True(t, i.Covers(hard.Parameters, "b", text), "it stays good for its text, whatever happens meanwhile")
	require.False(t, i.Covers(hard.Parameters, "b", other), "and for no other at that price")
	top := i.Harder(hard.Parameters, "board", "b", other)
	require.Equal(t, 7, top.Hint.Level)
	require.True(t, i.Covers(top.Parameters, "b", other))

	flat := 0
	dev := New(Config{Master: []byte("0123456789abcdef"), Now: func() time.Time { return now }, Flat: &flat})
	dev.Paid("a", pow.Parameters{}, text)
	require.True(t, dev.Covers(dev.Issue("board", "a").Parameters, "a", text), "no ramp, no price")
}

func TestAlike_IsBounded(t *testing.T) {
	t.Parallel()
	var a alike
	now := time.Now()
	spam := NewText(offer)
	for range 3 {
		a.add(spam, "n", now)
	}
	for n := range maxGroups + 100 {
		a.add(NewText(fmt.Sprintf("%x %x %x %x", mix(uint64(n)), mix(uint64(n+1)), mix(uint64(n+2)), mix(uint64(n)<<20))), "n", now)
	}
	require.LessOrEqual(t, len(a.groups), maxGroups)
	require.NotZero(t, a.steps(spam, "other", now), "what repeats is not pushed out by what does not")
	for n := range 10 * maxNetworks {
		a.add(spam, fmt.Sprint(n), now)
	}
	require.LessOrEqual(t, len(a.find(spam).networks), maxNetworks)
}

func BenchmarkAlike(b *testing.B) {
	i := priced()
	for n := range maxGroups {
		i.alike.add(NewText(fmt.Sprintf("%x %x %x", mix(uint64(n)), mix(uint64(n+1)), mix(uint64(n+2)))), "n", time.Now())
	}
	long := strings.Repeat(wanted, 30)[:4000]
	for b.Loop() {
		i.alike.steps(NewText(long), "n", time.Now())
	}
}

// TestText_Unseen adds to a text what a reader does not see.
func TestText_Unseen(t *testing.T) {
	t.Parallel()
	plain := NewText("葛城で売ります 1 2 3 4 5 6 7 8 9 क्ष")
	hidden := NewText("葛\U000e0100城\U000e0101で売ります 1\ufe0f 2\ufe0e 3\ufe0f 4\ufe0e 5\ufe0f 6\ufe0e 7\ufe0f 8\ufe0e 9\ufe0f क्\u200dष\u200e")
	require.Equal(t, plain.marks, hidden.marks)
}
