package words_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
)

func TestText(t *testing.T) {
	t.Parallel()
	en, hi := words.English(), words.Hindi()
	require.Equal(t, "1 reply", en.Text("%d replies", 1))
	require.Equal(t, "1,20,000 replies", en.Text("%d replies", 120000))
	require.Equal(t, "1,20,000 जवाब", hi.Text("%d replies", 120000))
	require.Equal(t, "Nobody has posted yet.", en.Text("Nobody has posted yet."))
	require.Equal(t, "a text without translation, 100%", hi.Text("a text without translation, 100%"))
	require.Equal(t, "Open", en.Text("Open##a test"), "a note is not shown")
	require.Equal(t, "Open at 9:00", en.Text("Open at %s##a test", "9:00"))
	require.Equal(t, "⟦1 reply⟧", words.Pseudo().Text("%d replies", 1))
	require.Same(t, en, words.Of(context.Background()))
	require.Same(t, hi, words.Of(words.With(t.Context(), hi)))
	at := time.Date(2026, 1, 5, 14, 30, 0, 0, time.UTC)
	require.Equal(t, "5 Jan 2026, 14:30", en.Time(at, "2 Jan 2006, 15:04"))
	require.Equal(t, "5 जन॰ 2026, 14:30", hi.Time(at, "2 Jan 2006, 15:04"))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	set := words.All()
	for _, tt := range []struct{ accept, cookie, want string }{
		{"", "", "en"}, {"hi", "", "hi"}, {"hi-IN,hi;q=0.9,en;q=0.8", "", "hi"}, {"en-IN,en;q=0.9,hi;q=0.8", "", "en"},
		{"hi;q=0.5,en", "", "en"}, {"de,fr;q=0.9", "", "en"}, {"mr,en;q=0.9", "", "en"}, {"ta-IN,hi;q=0.5", "", "hi"}, {"*", "", "en"},
		{"hi;q=0,en", "", "en"}, {"nonsense;;;q=x", "", "en"}, {"hi-Latn", "", "en"}, {"bho", "", "hi"}, {"HI", "", "hi"},
		{"en", "hi", "hi"}, {"hi", "en", "en"}, {"hi", "xx", "hi"}, {"hi", "", "hi"},
	} {
		r := &http.Request{Header: http.Header{}}
		if tt.accept != "" {
			r.Header.Set("Accept-Language", tt.accept)
		}
		if tt.cookie != "" {
			r.Header.Set("Cookie", "other=1; "+words.CookieName+"="+tt.cookie)
		}
		require.Equal(t, tt.want, set.Choose(r).Code, "%+v", tt)
		require.Equal(t, tt.want, set.Choose(r).Code, "once more: %+v", tt)
	}
}

func BenchmarkChoose(b *testing.B) {
	set := words.All()
	r := &http.Request{Header: http.Header{"Accept-Language": {"hi-IN,hi;q=0.9,en;q=0.8"}}}
	for b.Loop() {
		set.Choose(r)
	}
}

func BenchmarkText(b *testing.B) {
	hi := words.Hindi()
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			hi.Text("Nobody has posted yet.")
		}
	})
	b.Run("number", func(b *testing.B) {
		for b.Loop() {
			hi.Text("%d replies", 12)
		}
	})
}
