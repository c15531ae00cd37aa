package protocol

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Receipts of payments: numbers by financial year, the split of GST, and what a receipt says line by
// line. All of it is pure; the room of attention boards stores numbers and receipts.

// India is the zone of financial years, months and dates on receipts. It has had no other offset
// since 1945, so no table of zones is needed.
var India = time.FixedZone("IST", 5*3600+30*60)

// A FinancialYear is the calendar year in which a financial year of India begins: it lasts from
// April through March.
type FinancialYear int

// FinancialYearOf returns the financial year of a moment, by the clocks of India.
func FinancialYearOf(t time.Time) FinancialYear {
	t = t.In(India)
	if t.Month() < time.April {
		return FinancialYear(t.Year() - 1)
	}
	return FinancialYear(t.Year())
}

// String returns the usual form, such as 2026-27.
func (y FinancialYear) String() string { return fmt.Sprintf("%d-%02d", int(y), (int(y)+1)%100) }

// Begins returns the first moment of the year; that of the next year is the end.
func (y FinancialYear) Begins() time.Time { return time.Date(int(y), time.April, 1, 0, 0, 0, 0, India) }

// ReceiptNumber returns the number of the n-th receipt of a year, from 1, such as 2026-27/000012.
// Numbers of a year sort as texts up to 999,999, and have at most 16 characters then.
func ReceiptNumber(y FinancialYear, n int) string { return fmt.Sprintf("%s/%06d", y, n) }

// MonthInIndia returns the first moment of a month such as 2026-11 and that of the next one.
func MonthInIndia(month string) (from, until time.Time, ok bool) {
	from, err := time.ParseInLocation("2006-01", month, India)
	if err != nil || from.Year() < 1 {
		return time.Time{}, time.Time{}, false
	}
	return from, from.AddDate(0, 1, 0), true
}

// SplitGST splits an amount that includes GST. The rate is in hundredths of a percent: 1800 is 18 %.
// Both parts are in paise and add up to the amount; half a paisa of the taxable value is rounded up.
func SplitGST(paise, rate int64) (taxable, tax int64) {
	whole := 10_000 + rate
	taxable = (paise*10_000 + whole/2) / whole
	return taxable, paise - taxable
}

var gstinForm = regexp.MustCompile(`^[0-9]{2}[A-Z]{5}[0-9]{4}[A-Z][1-9A-Z]Z[0-9A-Z]$`)

// IsGSTIN reports whether s is a GST identification number of India whose check character is right.
func IsGSTIN(s string) bool {
	if !gstinForm.MatchString(s) {
		return false
	}
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := 0
	for i := range 14 {
		v := strings.IndexByte(digits, s[i]) * (1 + i%2) // weights 1, 2, 1, 2, …
		sum += v/36 + v%36
	}
	return s[14] == digits[(36-sum%36)%36]
}

// ReceiptNotice is on every receipt.
const ReceiptNotice = "This is a receipt of a payment, not a tax invoice."

// A Receipt is what an owner gives for one payment.
type Receipt struct {
	Number        string       `json:"number" example:"2026-27/000012" doc:"Numbers of a financial year follow each other without gaps."`
	FinancialYear string       `json:"financialYear" example:"2026-27" doc:"April through March."`
	IssuedAt      time.Time    `json:"issuedAt"`
	Payee         ReceiptPayee `json:"payee"`
	Payer         string       `json:"payer" doc:"Name as the bidder gave it, not verified; empty for none."`
	Amount        Money        `json:"amount"`
	Tax           *ReceiptTax  `json:"tax" required:"true" orNull:"true" doc:"Null unless the payee says that prices include GST."`
	Refunded      *Money       `json:"refunded" required:"true" orNull:"true" doc:"Of the amount, so far; null for nothing."`
	Provider      string       `json:"provider" doc:"Payment provider."`
	PaymentID     string       `json:"paymentId" doc:"Of the payment at the provider."`
	Reference     string       `json:"reference" doc:"The bank's reference (UTR); empty where it is not known."`
	PaidAt        time.Time    `json:"paidAt"`
	Board         string       `json:"board" doc:"Handle of the attention board."`
	Bid           string       `json:"bid"`
	SlotFrom      *time.Time   `json:"slotFrom" required:"true" orNull:"true" doc:"Null when the bid got no slot."`
	SlotUntil     *time.Time   `json:"slotUntil" required:"true" orNull:"true"`
	Test          bool         `json:"test" doc:"No money moved: the receipt is worth nothing."`
	Notice        string       `json:"notice"`
	Untrusted     bool         `json:"untrusted_content" doc:"Always true."`
}

// A ReceiptPayee is who received the money, as they wrote it.
type ReceiptPayee struct {
	Name    string `json:"name"`
	Address string `json:"address" doc:"Empty for none."`
	GSTIN   string `json:"gstin" doc:"Empty for none."`
}

// A ReceiptTax is the GST that an amount includes.
type ReceiptTax struct {
	Percent string `json:"percent" example:"18"`
	Taxable Money  `json:"taxable"`
	Tax     Money  `json:"tax"`
}

// TaxOf returns the GST that an amount of rupees includes, nil for a rate of 0 or less. The rate is
// in hundredths of a percent.
func TaxOf(paise, rate int64) *ReceiptTax {
	if rate <= 0 {
		return nil
	}
	taxable, tax := SplitGST(paise, rate)
	percent := strings.TrimSuffix(MoneyOf(Rupee, rate).Amount, ".00")
	if strings.Contains(percent, ".") {
		percent = strings.TrimRight(percent, "0")
	}
	return &ReceiptTax{Percent: percent, Taxable: MoneyOf(Rupee, taxable), Tax: MoneyOf(Rupee, tax)}
}

// A ReceiptLine is a line of a receipt as people read it.
type ReceiptLine struct{ Label, Value string }

// Lines returns the receipt for people, in the order of the page: plain text, to be escaped. A line
// without a value is left out.
func (r Receipt) Lines() []ReceiptLine {
	lines := []ReceiptLine{
		{"Receipt", r.Number}, {"Date", indianDay(r.IssuedAt)}, {"Received by", r.Payee.Name}, {"Address", r.Payee.Address}, {"GSTIN", r.Payee.GSTIN},
		{"Received from", r.Payer}, {"Amount", rupeesOf(r.Amount)},
	}
	if r.Tax != nil {
		lines = append(lines, ReceiptLine{"Taxable value", rupeesOf(r.Tax.Taxable)}, ReceiptLine{"GST, " + r.Tax.Percent + " % included", rupeesOf(r.Tax.Tax)})
	}
	if r.Refunded != nil {
		lines = append(lines, ReceiptLine{"Refunded", rupeesOf(*r.Refunded)})
	}
	paid := r.Provider + " " + r.PaymentID
	if r.PaymentID == "utr:"+r.Reference { // the bank reference, which has a line
		paid = "UPI"
	}
	lines = append(lines, []ReceiptLine{
		{"Paid", indianTime(r.PaidAt)}, {"Payment", paid}, {"Bank reference (UTR)", r.Reference},
		{"For", fmt.Sprintf("a slot on the attention board of @%s", r.Board)},
	}...)
	if r.SlotFrom != nil && r.SlotUntil != nil {
		lines = append(lines, ReceiptLine{"Slot", indianTime(*r.SlotFrom) + " to " + indianTime(*r.SlotUntil)})
	}
	lines = append(lines, ReceiptLine{"Bid", r.Bid}, ReceiptLine{"Note", r.Notice})
	if r.Test {
		lines = append([]ReceiptLine{{"TEST", "No money moved. This receipt is worth nothing."}}, lines...)
	}
	shown := lines[:0]
	for _, l := range lines {
		if strings.TrimSpace(l.Value) != "" {
			shown = append(shown, l)
		}
	}
	return shown
}

func indianDay(t time.Time) string  { return t.In(India).Format("2 January 2006") }
func indianTime(t time.Time) string { return t.In(India).Format("2 January 2006, 15:04 IST") }

// rupeesOf returns an amount as people in India write it; other currencies as they are.
func rupeesOf(m Money) string {
	paise, err := strconv.ParseInt(strings.Replace(m.Amount, ".", "", 1), 10, 64)
	if m.Currency != Rupee || err != nil {
		return m.Currency + " " + m.Amount
	}
	return FormatRupees(paise)
}
