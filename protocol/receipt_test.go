package protocol

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestFinancialYear: the year changes at midnight in India, which is half past six in the evening
// before in London.
func TestFinancialYear(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"2026-03-31T18:29:59.999Z":  "2025-26",
		"2026-03-31T18:30:00Z":      "2026-27",
		"2026-04-01T00:00:00+05:30": "2026-27",
		"2026-12-31T23:59:59Z":      "2026-27",
		"2027-01-01T00:00:00Z":      "2026-27",
		"2027-03-31T23:59:59+05:30": "2026-27",
		"1999-06-01T00:00:00Z":      "1999-00",
		"2008-05-01T00:00:00Z":      "2008-09",
	} {
		moment := must.Get(time.Parse(time.RFC3339Nano, at))(t)
		y := FinancialYearOf(moment)
		require.Equal(t, want, y.String(), at)
		require.False(t, moment.Before(y.Begins()), at)
		require.True(t, moment.Before((y + 1).Begins()), at)
	}
	zone := must.Get(time.LoadLocation("Asia/Kolkata"))(t)
	for month := range 12 * 60 { // 1970 to 2029
		at := time.Date(1970, time.January+time.Month(month), 1, 0, 0, 0, 0, zone)
		require.Equal(t, at.Format(time.RFC3339), at.In(India).Format(time.RFC3339))
	}
	require.Equal(t, "2026-27/000012", ReceiptNumber(2026, 12))
	require.LessOrEqual(t, len(ReceiptNumber(2026, 999_999)), 16)
}

func TestMonthInIndia(t *testing.T) {
	t.Parallel()
	from, until, ok := MonthInIndia("2026-12")
	require.True(t, ok)
	require.Equal(t, "2026-11-30T18:30:00Z", from.UTC().Format(time.RFC3339))
	require.Equal(t, "2026-12-31T18:30:00Z", until.UTC().Format(time.RFC3339))
	for _, s := range []string{"", "2026", "2026-13", "2026-1", "2026-01-01", "26-01", "2026-00", " 2026-01", "0000-01"} {
		_, _, ok := MonthInIndia(s)
		require.False(t, ok, s)
	}
}

func TestSplitGST(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ paise, rate, taxable, tax int64 }{
		{118_00, 1800, 100_00, 18_00},
		{1500_00, 1800, 1271_19, 228_81}, // 1271.186…
		{100, 1800, 85, 15},              // 84.7…
		{105, 500, 100, 5},
		{1, 1800, 1, 0},
		{3, 10000, 2, 1}, // 1.5 is rounded up
		{0, 1800, 0, 0},
		{1500_00, 0, 1500_00, 0},
		{MaxMinor, 2800, 781_250_000_000, 218_750_000_000},
	} {
		taxable, tax := SplitGST(c.paise, c.rate)
		require.Equal(t, []int64{c.taxable, c.tax}, []int64{taxable, tax}, "%+v", c)
	}
	for paise := range int64(5000) {
		taxable, tax := SplitGST(paise, 1800)
		require.Equal(t, paise, taxable+tax)
		require.LessOrEqual(t, abs(taxable*18-tax*100), int64(59), "%d: each part is right to half a paisa", paise)
	}
	require.Nil(t, TaxOf(100, 0))
	require.Equal(t, "18", TaxOf(100, 1800).Percent)
	require.Equal(t, "0.25", TaxOf(100, 25).Percent)
	require.Equal(t, "7.5", TaxOf(100, 750).Percent)
}

func abs(n int64) int64 { return max(n, -n) }

// TestIsGSTIN: the numbers are examples of public documents; each changed character is noticed.
func TestIsGSTIN(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"27AAPFU0939F1ZV", "29AAGCB7383J1Z4"} {
		require.True(t, IsGSTIN(good), good)
		for i := range good {
			changed := []byte(good)
			if changed[i]++; changed[i] == '9'+1 {
				changed[i] = '0'
			}
			require.False(t, IsGSTIN(string(changed)), "%s", changed)
		}
	}
	for _, s := range []string{"", "27AAPFU0939F1Z", "27aapfu0939f1zv", "27AAPFU0939F1ZV ", "27AAPFU0939F0ZV"} {
		require.False(t, IsGSTIN(s), s)
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	paid := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	until := paid.Add(7 * 24 * time.Hour)
	r := Receipt{
		Number: ReceiptNumber(FinancialYearOf(paid), 12), FinancialYear: "2026-27", IssuedAt: paid, Payee: ReceiptPayee{Name: "Asha Rao", GSTIN: "27AAPFU0939F1ZV"},
		Payer: "Bob", Amount: MoneyOf(Rupee, 1_50_000_50), Provider: "upi", PaymentID: "utr:432198760155", Reference: "432198760155", PaidAt: paid,
		Board: "asha", Bid: "bid_1", SlotFrom: &paid, SlotUntil: &until, Notice: ReceiptNotice, Untrusted: true,
	}
	require.Equal(t, []ReceiptLine{
		{"Receipt", "2026-27/000012"}, {"Date", "22 November 2026"}, {"Received by", "Asha Rao"}, {"GSTIN", "27AAPFU0939F1ZV"}, {"Received from", "Bob"},
		{"Amount", "₹1,50,000.50"}, {"Paid", "22 November 2026, 17:30 IST"}, {"Payment", "UPI"}, {"Bank reference (UTR)", "432198760155"},
		{"For", "a slot on the attention board of @asha"}, {"Slot", "22 November 2026, 17:30 IST to 29 November 2026, 17:30 IST"}, {"Bid", "bid_1"},
		{"Note", ReceiptNotice},
	}, r.Lines())
	r.Tax, r.Refunded, r.Test, r.SlotFrom, r.Payer = TaxOf(1_50_000_50, 1800), new(MoneyOf(Rupee, 100)), true, nil, " "
	require.Equal(t, []ReceiptLine{
		{"TEST", "No money moved. This receipt is worth nothing."}, {"Receipt", "2026-27/000012"}, {"Date", "22 November 2026"}, {"Received by", "Asha Rao"},
		{"GSTIN", "27AAPFU0939F1ZV"}, {"Amount", "₹1,50,000.50"}, {"Taxable value", "₹1,27,119.07"}, {"GST, 18 % included", "₹22,881.43"}, {"Refunded", "₹1"},
		{"Paid", "22 November 2026, 17:30 IST"}, {"Payment", "UPI"}, {"Bank reference (UTR)", "432198760155"},
		{"For", "a slot on the attention board of @asha"}, {"Bid", "bid_1"}, {"Note", ReceiptNotice},
	}, r.Lines())
	raw := must.Get(json.Marshal(r))(t)
	again := must.JSON[Receipt](raw)(t)
	require.Equal(t, r.Lines(), again.Lines(), "a receipt that was stored says the same")
}
