package protocol

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestMoneyCSV(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 18, 30, 0, 0, time.UTC) // the first of December in India
	raw := MoneyCSV([]MoneyRow{
		{
			At: at, Paise: 150050, Currency: "INR", Receipt: "2026-27/000001", Payer: `आशा "A" Rao, Pune`, Board: "asha",
			Bid: "bid_1", Provider: "razorpay", PaymentID: "pay_1",
			Reference: "432198760155",
		},
		{At: at.Add(time.Hour), Paise: -5, Currency: "USD", Payer: "=HYPERLINK(\"https://x.example\")", Bid: "bid_1", RefundID: "rfnd_1",
			Note: "displaced\n+1", Test: true},
	})
	require.Equal(t, "\ufeffdate,time,kind,amount,currency,receipt,payer,board,bid,provider,payment,refund,reference,note,test\r\n"+
		"2026-12-01,00:00:00,payment,1500.50,INR,2026-27/000001,\"आशा \"\"A\"\" Rao, Pune\",asha,bid_1,razorpay,pay_1,,432198760155,,\r\n"+
		"2026-12-01,01:00:00,refund,-0.05,USD,,\"'=HYPERLINK(\"\"https://x.example\"\")\",,bid_1,,,rfnd_1,,displaced '+1,TEST\r\n", string(raw))
	require.Equal(t, 1, bytes.Count(MoneyCSV(nil), []byte("\n")), "a month without money has the columns")
}

func TestCell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                     "",
		"Asha":                 "Asha",
		"a-b=c@d+e":            "a-b=c@d+e",
		"=1+1":                 "'=1+1",
		"+919999":              "'+919999",
		"-1":                   "'-1",
		"@SUM(A1)":             "'@SUM(A1)",
		"＝1":                   "'＝1",
		"  =1":                 "  '=1",
		"\t=1":                 " '=1",
		"\r\n=1":               "  '=1",
		"\u200d=1":             "\u200d'=1",
		"\u00a0-1":             "\u00a0'-1",
		"a;=cmd|' /C calc'!A0": "a;'=cmd|' /C calc'!A0",
		"a\t=1":                "a '=1",
		"a,\"=1":               "a,\"'=1",
		"==1":                  "'==1",
		"x\x00y":               "xy",
		"\x00=1":               "'=1",
	} {
		require.Equal(t, want, cell(in), "%q", in)
	}
}

// FuzzCell: no part of a cell begins a formula, and only apostrophes and spaces are added.
func FuzzCell(f *testing.F) {
	for _, s := range []string{"=1", "a;=1", " \t-", "\"@x", "＋1", "\u200b=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := cell(s)
		for _, part := range strings.FieldsFunc(got, func(r rune) bool { return strings.ContainsRune(",;\t\r\n\"|", r) }) {
			part = strings.TrimLeft(part, " \u00a0\u3000")
			require.False(t, part != "" && strings.ContainsAny(part[:1], "=+-@"), "%q of %q", part, s)
		}
		require.Equal(t, got, cell(got), "a safe cell stays as it is")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		require.NoError(t, w.Write([]string{got, "x"}))
		w.Flush()
		require.Equal(t, [][]string{{got, "x"}}, must.Get(csv.NewReader(&b).ReadAll())(t))
	})
}
