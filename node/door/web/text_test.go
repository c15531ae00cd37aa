package web

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

func TestWeek(t *testing.T) {
	t.Parallel()
	require.Nil(t, week(t.Context(), nil))
	days := week(t.Context(), []protocol.DayHours{{Day: "monday", Opens: "17:00", Closes: "01:00"}, {Day: "monday", Opens: "07:30", Closes: "11:00"},
		{Day: "sunday", Opens: "00:00", Closes: "24:00"}})
	require.Len(t, days, 7)
	require.Equal(t, day{"Monday", "07:30–11:00, 17:00–01:00", false}, days[0])
	require.Equal(t, day{"Tuesday", "closed", true}, days[1])
	require.Equal(t, day{"Sunday", "00:00–24:00", false}, days[6])
	require.Equal(t, []day{{"8 Nov 2026 to 9 Nov 2026", "closed · Diwali", true}, {"1 Jan 2027", "10:00–12:00", false}},
		exceptional(t.Context(), []protocol.ExceptionHours{
			{Title: "Diwali", ValidFrom: "2026-11-08", ValidThrough: "2026-11-09"},
			{ValidFrom: "2027-01-01", ValidThrough: "2027-01-01", Opens: "10:00", Closes: "12:00"}}))

	// Days that are over in the merchant's zone are not shown.
	zone := "Asia/Kolkata"
	m := protocol.Merchant{Timezone: &zone, ExceptionHours: []protocol.ExceptionHours{
		{ValidFrom: "2026-11-01", ValidThrough: "2026-11-07"}, {ValidFrom: "2026-11-07", ValidThrough: "2026-11-08"},
		{ValidFrom: "2026-12-25", ValidThrough: "2026-12-25"}}}
	require.Equal(t, m.ExceptionHours[1:], coming(m, time.Date(2026, 11, 7, 18, 30, 0, 0, time.UTC)), "8 November has begun there")
	require.Equal(t, m.ExceptionHours, coming(m, time.Date(2026, 11, 7, 18, 29, 0, 0, time.UTC)))
}

func TestTurn(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 15, 30, 0, 0, time.UTC)
	zone := "Asia/Kolkata"
	change := func(o protocol.Openness) string {
		return nextChange(t.Context(), protocol.Merchant{Timezone: &zone, Openness: o})
	}
	require.Equal(t, "closes Sun 22 Nov, 21:00 IST", change(protocol.Openness{OpenNow: new(true), ClosesAt: &at}))
	require.Equal(t, "opens Sun 22 Nov, 21:00 IST", change(protocol.Openness{OpenNow: new(false), OpensAt: &at}))
	require.Empty(t, change(protocol.Openness{OpenNow: new(true)}), "open without end")
}

func TestWorth(t *testing.T) {
	t.Parallel()
	require.Equal(t, "price on request", amount(t.Context(), nil, nil))
	require.Equal(t, "₹120.50", amount(t.Context(), &protocol.Money{Currency: "INR", Amount: "120.50"}, nil))
	require.Equal(t, "₹120.50 per plate", amount(t.Context(), &protocol.Money{Currency: "INR", Amount: "120.50"}, new("plate")))
	require.Equal(t, []string{"1 Lane", "Bengaluru 560001", "Karnataka"},
		postal(t.Context(), &protocol.Address{Street: "1 Lane", PostalCode: "560001", Region: "IN-KA", Country: "IN"}, new("Bengaluru")))
	require.Equal(t, []string{"Bengaluru"}, postal(t.Context(), nil, new("Bengaluru")))
}

func TestSegments(t *testing.T) {
	t.Parallel()
	for text, links := range map[string][]string{
		"":                         nil,
		"no address":               nil,
		"see https://a.example/x.": {"https://a.example/x"},
		"(http://a.example/b_(c))": {"http://a.example/b_(c)"},
		"https://a.example, http://b.example/?q=1&r=2#f!": {"https://a.example", "http://b.example/?q=1&r=2#f"},
		"“https://a.example/é”":                           {"https://a.example/é"},
		"देखें https://a.example/हिन्दी।":                 {"https://a.example/हिन्दी"},
		"javascript:alert(1)":                             nil,
		"data:text/html,x ftp://a.b":                      nil,
		"xhttps://a.example":                              nil,
		"HTTPS://A.EXAMPLE":                               nil,
		"https://":                                        nil,
		"http:///x":                                       nil,
		"https://bank.example@evil.example/":              nil,
		"https://a.example\"onmouseover=\"x":              {"https://a.example"},
		"https://a.example/<b>":                           {"https://a.example/"},
	} {
		var found []string
		for _, s := range segments(text) {
			if s.Href != "" {
				found = append(found, s.Href)
			}
		}
		require.Equal(t, links, found, "%q", text)
	}
}

// FuzzSegments: nothing of a text is lost or made up, and a link is what it
// shows, over http or https, at a host.
func FuzzSegments(f *testing.F) {
	for _, s := range []string{"a https://b.example/c, d", "http://http://", "https://[::1]/", "https://%zz", "httphttps://x.y\u0000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var whole strings.Builder
		for _, s := range segments(text) {
			whole.WriteString(s.Text)
			if s.Href == "" {
				continue
			}
			require.Equal(t, s.Text, s.Href)
			u := must.Get(url.Parse(s.Href))(t)
			require.Contains(t, []string{"http", "https"}, u.Scheme)
			require.NotEmpty(t, u.Host)
			require.Nil(t, u.User)
		}
		require.Equal(t, text, whole.String())
	})
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", excerpt("short", 5))
	require.Equal(t, "one two …", excerpt("one two three", 8))
	require.Equal(t, "हिन्दी …", excerpt("हिन्दीहिन्दी", 6))
	require.True(t, utf8.ValidString(excerpt(strings.Repeat("ü", 400), 280)))
}

func TestPrice(t *testing.T) {
	t.Parallel()
	amount := 1500.5
	for want, p := range map[string]protocol.Pricing{
		"free":                  {Model: protocol.Free},
		"₹1,500.50 fixed price": {Model: protocol.Fixed, Currency: "INR", Amount: &amount},
		"per use in INR":        {Model: protocol.PerUse, Currency: "INR"},
		"on quotation":          {Model: protocol.Quote},
	} {
		require.Equal(t, want, price(t.Context(), &p))
	}
}

func TestRating(t *testing.T) {
	t.Parallel()
	average := 4.25
	require.Equal(t, "1 review", rating(t.Context(), protocol.Reputation{Reviews: 1}))
	require.Equal(t, "12 reviews, 4.2 on average", rating(t.Context(), protocol.Reputation{Reviews: 12, Average: &average}))
}

// TestMarks: a reader never takes the word of another node, or nobody's word,
// for a key that this node checked (contract §2).
func TestMarks(t *testing.T) {
	t.Parallel()
	there, agent := "b.example", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	verified := func(level protocol.ProofLevel, subject string) protocol.Author {
		return protocol.Author{Verified: true, Proof: protocol.AuthorProof{Level: level, Subject: &subject}}
	}
	for _, tt := range []struct {
		author     protocol.Author
		word, says string
	}{
		{verified(protocol.ByChainKey, agent), "verified by chain key", "registered on chain"},
		{verified(protocol.ByWallet, agent), "verified by wallet", "wallet that the chain names"},
		{verified(protocol.ByOwner, agent), "verified by owner", "owns this identity"},
		{verified(protocol.ByDirectory, "https://bot.example/x"), "verified for bot.example", "nothing more"},
		{verified(protocol.ByProfileKey, ""), "verified by profile key", "author's profile"},
		{verified(protocol.BySignIn, ""), "verified by sign-in", "signed in"},
		{protocol.Author{Method: protocol.ByFederation, Node: &there, ERC8004: &agent}, "on the word of b.example", "has not verified"},
		{protocol.Author{Method: protocol.ByProof, Node: &there}, "on the word of b.example", "has not verified"},
		{protocol.Author{Method: protocol.ByProof}, "unverified", "Nobody vouches"},
	} {
		m := markOf(t.Context(), tt.author)
		require.Equal(t, tt.word, m.Word)
		require.Contains(t, m.Why, tt.says)
	}
}

// A text that is made to be read again and again is read in time that grows with
// its length: one fifty times as long as any may be ends, where the square of the
// length would take many minutes.
func TestSegments_HostileText(t *testing.T) {
	t.Parallel()
	const times = 50
	for name, text := range map[string]string{
		"brackets":             "http://a" + strings.Repeat(")", 4000*times),
		"addresses in another": strings.Repeat("http://a@", 444*times),
		"both":                 strings.Repeat("http://a@", 220*times) + strings.Repeat(")", 2000*times),
		"closed and opened":    "http://a" + strings.Repeat("]).", 1300*times),
	} {
		done := make(chan string)
		go func() {
			var all strings.Builder
			for _, s := range segments(text) {
				all.WriteString(s.Text)
			}
			done <- all.String()
		}()
		select {
		case all := <-done:
			require.Equal(t, len(text), len(all), name)
			require.True(t, text == all, name)
		case <-time.After(time.Minute):
			t.Fatal(name)
		}
	}
}

// TestPostText: the text of a post with a content warning is closed, and the warning is text.
func TestPostText(t *testing.T) {
	t.Parallel()
	shown := func(p protocol.Post) string {
		var b strings.Builder
		require.NoError(t, postText(p).Render(t.Context(), &b))
		return b.String()
	}
	require.NotContains(t, shown(protocol.Post{Body: "Soup."}), "<details")
	require.Equal(t, `<details><summary lang="" dir="auto">food &lt;b&gt;</summary><div class="text" lang="" dir="auto">Soup.</div></details>`,
		shown(protocol.Post{Body: "Soup.", Warning: "food <b>"}))
}
