package web

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// TestUnits_Language: a unit is in the reader's language, whichever the owner wrote it in.
func TestUnits_Language(t *testing.T) {
	t.Parallel()
	hindi := words.With(context.Background(), words.Hindi())
	for unit, want := range map[string][2]string{
		"plate": {"plate", "प्लेट"}, "Plate": {"plate", "प्लेट"}, "प्लेट": {"plate", "प्लेट"}, "pcs": {"piece", "नग"}, "kg": {"kg", "किलो"},
		"bundle of 7": {"bundle of 7", "bundle of 7"},
	} {
		require.Equal(t, want[0], unitWord(context.Background(), unit))
		require.Equal(t, want[1], unitWord(hindi, unit))
	}
	require.Equal(t, "₹120 प्रति प्लेट", amount(hindi, &protocol.Money{Currency: "INR", Amount: "120.00"}, new("plate")))
}

// TestNewsLine_Language has every line that the rooms write.
func TestNewsLine_Language(t *testing.T) {
	t.Parallel()
	hindi := words.With(context.Background(), words.Hindi())
	for _, c := range []struct {
		kind            protocol.FeedType
		title, said, is string
	}{
		{protocol.FeedBoardPost, "Looms", "Offer: Looms", "ऑफ़र: Looms"},
		{protocol.FeedBoardPost, "Looms", "Offer: other looms", "Offer: other looms"},
		{protocol.FeedMerchantJoined, "Rao", "Rao joined. Tiffins since 1962", "Rao यहाँ जुड़े। Tiffins since 1962"},
		{protocol.FeedListing, "Idli", "Rao offers Idli, INR 12.00.", "Rao के यहाँ अब ₹12 में Idli"},
		{protocol.FeedListing, "Idli", "Rao offers Idli.", "Rao के यहाँ अब Idli"},
		{protocol.FeedListing, "Idli", "Rao offers Idli fresh.", "Rao offers Idli fresh."},
		{protocol.FeedListing, "Idli", "Rao lowered the price of Idli to INR 10.00 from 12.00.", "Rao ने Idli का दाम ₹12 से घटाकर ₹10 किया"},
		{protocol.FeedReview, "Rao", protocol.NewsReview{Rating: 9000,
			Receipt: true}.Summary("Rao"), "Rao को 5 में से 4.5 का रिव्यू मिला, दुकान की रसीद के साथ।"},
		{protocol.FeedReview, "Rao", protocol.NewsReview{Rating: 10000}.Summary("Rao"), "Rao को 5 में से 5 का रिव्यू मिला, चेन पर भुगतान के साथ।"},
		{protocol.FeedAttentionBid, "Yarn", "Rao bids INR 1500.00 for the attention of @asha.", "Rao ने @asha के ध्यान के लिए ₹1,500 की बोली लगाई।"},
		{protocol.FeedAttentionBid, "Yarn", "Something else.", "Something else."},
	} {
		item := protocol.FeedItem{Type: c.kind, Actor: protocol.Author{Name: "Rao"}, Subject: protocol.Subject{Title: c.title}, Summary: c.said}
		require.Equal(t, c.is, newsLine(hindi, item))
		require.Equal(t, c.said, newsLine(context.Background(), item))
	}
}

// TestDayHours: the same hours every day, and a day's hours copied to others, also where a fault is.
func TestDayHours(t *testing.T) {
	t.Parallel()
	days := func(form url.Values) (n map[string]int) {
		n = map[string]int{}
		for _, x := range dayHours(form) {
			require.Equal(t, [2]string{"09:00", "21:00"}, [2]string{x[1], x[2]})
			n[x[0]]++
		}
		return n
	}
	require.Len(t, days(valued(everyDay, "9am-9pm", "hours-monday", "10-12")), 7)
	require.Len(t, days(valued("hours-tuesday", "9am-9pm", copyDay, "tuesday")), 7)
	require.Equal(t, map[string]int{"monday": 1, "tuesday": 1, "wednesday": 1, "thursday": 1, "friday": 1},
		days(valued("hours-monday", "9am-9pm", "hours-tuesday", "10-12", copyDay, "monday-friday")))
	require.Len(t, days(valued("hours-monday", "9-21", copyDay, "monday-saturday", "hours-sunday", "बंद")), 6)
	require.Len(t, days(valued("hours-monday", "9-21", copyDay, "nonsense")), 1)
	name, text := newSent(valued("hours-monday", "9-13, 9-6", copyDay, "monday")).hoursPlace(3)
	require.Equal(t, [2]string{"hours-monday", "9-6"}, [2]string{name, text})
	name, text = newSent(valued(everyDay, "9-6")).hoursPlace(2)
	require.Equal(t, [2]string{everyDay, "9-6"}, [2]string{name, text})
	require.Contains(t, misread(context.Background(), name, text), "can be read in two ways")
}

// TestTypedPhone: the country is that of the address, else India unless the shop is elsewhere.
func TestTypedPhone(t *testing.T) {
	t.Parallel()
	for want, args := range map[string]map[string]any{
		"+918026500000": {"address": map[string]any{"region": "IN-KA"}}, "+448026500000": {"address": map[string]any{"country": "GB"},
			"timezone": "Asia/Kolkata"},
		"080 2650 0000": {"timezone": "Europe/Oslo"},
	} {
		require.Equal(t, want, typedPhone("080 2650 0000", args))
	}
	require.Equal(t, "+918026500000", typedPhone("080 2650 0000", map[string]any{"timezone": "Asia/Calcutta"}))
}
