package protocol

import (
	"bytes"
	"encoding/csv"
	"strings"
	"time"
	"unicode"
)

// A MoneyRow is one movement of money on an attention board, for the owner's books.
type MoneyRow struct {
	At        time.Time
	Paise     int64 // minor units of Currency: positive for a payment, negative for a refund
	Currency  string
	Receipt   string // number of the payment's receipt
	Payer     string // as the bidder gave it
	Board     string // handle
	Bid       string
	Provider  string
	PaymentID string
	RefundID  string // "" for a payment
	Reference string // of the bank: of the payment, or of a refund that was made by hand
	Note      string // why it was refunded
	Test      bool   // no money moved
}

var moneyColumns = []string{
	"date", "time", "kind", "amount", "currency", "receipt", "payer", "board", "bid", "provider", "payment", "refund", "reference", "note", "test",
}

// MoneyCSV returns rows as a file of comma-separated values (RFC 4180) in UTF-8. It begins with a
// byte order mark, without which spreadsheets read names in other scripts wrongly. Date and time are
// those of India; the amount is negative for a refund, so that those of one currency can be added up.
//
// Texts come from strangers and a spreadsheet runs a cell that begins as a formula does, so such a
// cell gets an apostrophe, which spreadsheets show as plain text ("CSV injection").
func MoneyCSV(rows []MoneyRow) []byte {
	var b bytes.Buffer
	b.WriteString("\ufeff")
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	w.Write(moneyColumns) // a bytes.Buffer takes everything
	for _, r := range rows {
		at, kind, amount, test := r.At.In(India), "payment", MoneyOf(r.Currency, max(r.Paise, -r.Paise)).Amount, ""
		if r.Paise < 0 {
			kind, amount = "refund", "-"+amount
		}
		if r.Test {
			test = "TEST"
		}
		w.Write([]string{
			at.Format(time.DateOnly), at.Format(time.TimeOnly), kind, amount, cell(r.Currency), cell(r.Receipt), cell(r.Payer), cell(r.Board), cell(r.Bid),
			cell(r.Provider), cell(r.PaymentID), cell(r.RefundID), cell(r.Reference), cell(r.Note), test,
		})
	}
	w.Flush()
	return b.Bytes()
}

// cell returns a text that no spreadsheet runs. The same holds for each part of it, since a
// spreadsheet may divide cells at semicolons, tabs and line breaks too.
func cell(s string) string {
	var b strings.Builder
	begins := true
	for _, r := range s {
		switch {
		case r == '\t' || r == '\r' || r == '\n':
			r, begins = ' ', true
		case unicode.IsControl(r): // some readers drop it
			continue
		case begins && strings.ContainsRune("=+-@＝＋－＠", r):
			b.WriteByte('\'')
			begins = false
		case strings.ContainsRune(",;\"|", r):
			begins = true
		case !unicode.IsSpace(r) && Shown(r):
			begins = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
