package upi_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/upi"
	"stoa/protocol/must"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

func TestExercise(t *testing.T) {
	t.Parallel()
	paytest.Exercise(t, func(t *testing.T) paytest.Rail {
		p := must.Get(upi.New("asha@okbank", "Asha Rao", clock))(t)
		return paytest.Rail{Provider: p, Now: clock}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vpa, name string }{
		{"", "Asha"}, {"asha", "Asha"}, {"asha@", "Asha"}, {"a@okbank", "Asha"}, {"asha@ok-bank", "Asha"}, {"asha@1bank", "Asha"},
		{"asha@okbank&am=1", "Asha"}, {"asha@okbank\n", "Asha"}, {"asha@ok@bank", "Asha"}, {"अशा@okbank", "Asha"}, {"asha@okbank", " \n "},
	} {
		_, err := upi.New(c.vpa, c.name, nil)
		require.ErrorIs(t, err, pay.ErrAccount, "%q %q", c.vpa, c.name)
	}
	p := must.Get(upi.New("asha.rao-1_x@okbank", "Asha", nil))(t)
	require.Equal(t, "asha.rao-1_x@okbank", p.VPA())
}

func linkOf(t *testing.T, vpa, name, note string, paise int64) string {
	t.Helper()
	p := must.Get(upi.New(vpa, name, clock))(t)
	l := must.Get(p.CreateLink(t.Context(), pay.LinkRequest{
		Ref: "bid_01jdxyz8q-1", AmountPaise: paise, Currency: "INR", Description: note, ExpiresAt: noon.Add(20 * time.Minute),
	}))(t)
	require.Empty(t, l.URL)
	return l.UPI
}

func TestLink(t *testing.T) {
	t.Parallel()
	require.Equal(t, "upi://pay?pa=asha@okbank&pn=Asha%20Rao&am=1500.00&cu=INR&tr=BID01JDXYZ8Q1&tn=Attention%20bid%2001JDXYZ8Q",
		linkOf(t, "asha@okbank", "Asha Rao", "Attention bid 01JDXYZ8Q", 150000))
	require.Equal(t, "upi://pay?pa=asha@okbank&pn=Rao%20%26%20Sons&am=1.05&cu=INR&tr=BID01JDXYZ8Q1", linkOf(t, "asha@okbank", " Rao  &\nSons ", "", 105))
}

// TestLink_Hostile: whatever a name or note holds, the link has the members that it had, once each,
// and stays short enough for a QR code.
func TestLink_Hostile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Asha&am=1.00", "Asha#x", "Asha+Rao", "100% Asha", "Asha\r\nRao", "a=b?c", strings.Repeat("a", 500), strings.Repeat("आशा राव ", 60),
		strings.Repeat("😀", 90),
	} {
		raw := linkOf(t, "asha@okbank", text, text, 150000)
		require.Less(t, len(raw), 800)
		require.NotContains(t, raw, "+")
		u := must.Get(url.Parse(raw))(t)
		q := u.Query()
		require.Equal(t, "upi", u.Scheme)
		require.Equal(t, "pay", u.Host)
		require.Empty(t, u.Fragment)
		require.Len(t, q, 6)
		for member, values := range q {
			require.Len(t, values, 1, member)
		}
		require.Equal(t, "1500.00", q.Get("am"))
		require.True(t, strings.HasPrefix(strings.Join(strings.Fields(text), " "), q.Get("pn")), "%q", q.Get("pn"))
		require.NotEmpty(t, q.Get("pn"))
		require.LessOrEqual(t, len([]rune(q.Get("tn"))), 50)
	}
}

// FuzzLink: a link says the name and the note that were given, cut at the end, and nothing else.
func FuzzLink(f *testing.F) {
	f.Add("Asha Rao", "Attention bid 01JD", int64(150000))
	f.Add("A&am=1", "x#y%zz+", int64(1))
	f.Add("\xff\x00", "", int64(99))
	f.Fuzz(func(t *testing.T, name, note string, paise int64) {
		p, err := upi.New("asha@okbank", name, clock)
		if err != nil {
			require.ErrorIs(t, err, pay.ErrAccount)
			return
		}
		l, err := p.CreateLink(t.Context(), pay.LinkRequest{Ref: "b-1", AmountPaise: paise, Currency: "INR", Description: note, ExpiresAt: noon.Add(time.Minute)})
		if err != nil {
			require.ErrorIs(t, err, pay.ErrAmount)
			return
		}
		require.LessOrEqual(t, len(l.UPI), 500)
		u, err := url.Parse(l.UPI)
		require.NoError(t, err)
		q, err := url.ParseQuery(u.RawQuery)
		require.NoError(t, err)
		require.Equal(t, []string{"asha@okbank"}, q["pa"])
		require.Len(t, q["am"], 1)
		require.Equal(t, []string{"INR"}, q["cu"])
		require.Equal(t, []string{"B1"}, q["tr"])
		for member, given := range map[string]string{"pn": name, "tn": note} {
			valid := string([]rune(strings.Join(strings.Fields(given), " "))) // each wrong byte is U+FFFD
			require.True(t, strings.HasPrefix(valid, q.Get(member)), "%q %q", given, q.Get(member))
		}
		require.NotEmpty(t, q.Get("pn"))
		for member := range q {
			require.Contains(t, []string{"pa", "pn", "am", "cu", "tr", "tn"}, member)
		}
	})
}

func TestLink_TooMuchForABank(t *testing.T) {
	t.Parallel()
	p, err := upi.New("asha@okbank", "Asha", clock)
	require.NoError(t, err)
	r := pay.LinkRequest{Ref: "b-1", AmountPaise: 1_00_000_00, Currency: "INR", ExpiresAt: noon.Add(time.Minute)}
	must.Get(p.CreateLink(t.Context(), r))(t)
	r.AmountPaise++
	_, err = p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrAmount)
	r.AmountPaise, r.Ref = 100, "---"
	_, err = p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrRefused, "nothing is left of the reference")
	r.Ref = strings.Repeat("a", 36)
	_, err = p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrRefused)
}
