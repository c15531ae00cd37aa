package upi

import (
	"net/url"
	"strings"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// Bounds of the parts of a link. Apps cut longer notes; a longer name makes a QR code that a phone
// does not read from a screen. A letter of Devanagari has nine bytes after encoding.
const (
	maxReference = 35
	maxNote      = 50  // characters
	maxEncoded   = 180 // bytes of a name or note as they are in the link
)

// Reference returns the tr of a link: the letters and digits of ref in upper case, since some apps
// refuse others. The payer's bank shows it next to the payment.
func Reference(ref string) string { return pay.Plain(ref) }

// link returns a payment link (NPCI UPI Linking Specification 1.6): payee, name, amount with two
// decimals, currency, reference, note. It has no mc and no tid, which only the payee's bank may
// give, and no url.
func link(vpa, name, ref, note string, paise int64) string {
	var b strings.Builder
	b.WriteString("upi://pay?pa=" + vpa) // has no character that needs encoding; @ must stay as it is
	b.WriteString("&pn=" + escape(name, maxEncoded))
	b.WriteString("&am=" + protocol.MoneyOf(protocol.Rupee, paise).Amount)
	b.WriteString("&cu=" + protocol.Rupee)
	b.WriteString("&tr=" + ref)
	if note = pay.Clip(strings.Join(strings.Fields(note), " "), maxNote); note != "" {
		b.WriteString("&tn=" + escape(note, maxEncoded))
	}
	return b.String()
}

// escape encodes a value, with %20 for a space because some apps show a plus sign as it is, and
// drops the characters at its end that do not fit.
func escape(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		e := strings.ReplaceAll(url.QueryEscape(string(r)), "+", "%20")
		if b.Len()+len(e) > most {
			break
		}
		b.WriteString(e)
	}
	return strings.TrimSuffix(b.String(), "%20")
}
