package mail

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"net/textproto"
	"regexp"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"
)

// hard reports whether a refusal means that the mailbox does not exist or takes no mail (RFC 3463 §3.2,
// §3.3). A full mailbox does not, nor a refusal of the sender, of the text, or of relaying; and a code
// without details may be any of these.
func hard(code int, enhanced smtp.EnhancedCode) bool {
	sender := enhanced[2] == 7 || enhanced[2] == 8 // 5.1.7 and 5.1.8 are about the sender's address
	return code >= 500 && enhanced[0] == 5 && (enhanced[1] == 1 && !sender || enhanced[1] == 2 && enhanced[2] == 1)
}

// A Return makes the addresses that bounces of one letter (VERP) and answers to it come to: the local
// part of From, +b- or +a-, an id, and a MAC over both, so that nobody can make a bounce of a letter
// that they did not see, nor answer it. The operator's mail server must deliver addresses with + as
// those without.
type Return struct {
	From string // bare address
	Key  []byte // nil: everything comes to From
}

const (
	bounces = "+b-"
	answers = "+a-"
)

var returnID = regexp.MustCompile(`^[a-z0-9_.]{1,32}$`)

// Address returns the address for bounces of a letter; From when the id is not 1 to 32 of a-z, 0-9, _
// and dot, or the address would be too long.
func (r Return) Address(id string) string { return r.tagged(bounces, id) }

// Answers returns the address for answers to a letter, with the same bounds as Address.
func (r Return) Answers(id string) string { return r.tagged(answers, id) }

func (r Return) tagged(tag, id string) string {
	local, domain, _ := strings.Cut(r.From, "@")
	address := local + tag + id + "-" + r.mac(tag, id) + "@" + domain
	if at := strings.LastIndexByte(address, '@'); r.Key == nil || !returnID.MatchString(id) || at > 64 { // RFC 5321 §4.5.3.1.1
		return r.From
	}
	return address
}

// ID returns the id of the letter that came back to an address.
func (r Return) ID(address string) (id string, ok bool) { return r.read(bounces, address) }

// Answered returns the id of the letter that is answered at an address.
func (r Return) Answered(address string) (id string, ok bool) { return r.read(answers, address) }

func (r Return) read(tag, address string) (id string, ok bool) {
	local, domain, _ := strings.Cut(strings.ToLower(r.From), "@")
	address = strings.ToLower(address)
	rest, tagged := strings.CutPrefix(strings.TrimSuffix(address, "@"+domain), local+tag)
	id, mac, parted := strings.Cut(rest, "-")
	return id, r.Key != nil && tagged && parted && strings.HasSuffix(address, "@"+domain) && hmac.Equal([]byte(mac), []byte(r.mac(tag, id)))
}

func (r Return) mac(tag, id string) string {
	h := hmac.New(sha256.New, r.Key)
	h.Write([]byte(tag + id))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// A Bounce is what a mail server says about a letter that it could not deliver (RFC 3464).
type Bounce struct {
	Status string // such as 5.1.1
	Hard   bool   // the mailbox does not exist or takes no mail
}

var (
	status     = regexp.MustCompile(`^5\.[0-9]{1,3}\.[0-9]{1,3}`)
	diagnostic = regexp.MustCompile(`(?i)^ *smtp; *5[0-9][0-9][- ](5\.[0-9]{1,3}\.[0-9]{1,3})`)
)

// ReadBounce reads a report of failed delivery. ok is false for any other mail, and for reports of
// delays and successes. It believes what it reads: the address that the report came to must show that
// it is about a letter of this node.
func ReadBounce(raw []byte) (b Bounce, ok bool) {
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return b, false
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/report" || !strings.EqualFold(params["report-type"], "delivery-status") {
		return b, false
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for range 5 {
		p, err := parts.NextPart()
		if err != nil {
			return b, false
		}
		switch kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type")); kind {
		case "message/delivery-status", "message/global-delivery-status": // RFC 6533
			return readStatus(io.LimitReader(p, 64<<10))
		}
	}
	return b, false
}

// readStatus reads the fields of the report, then those of each recipient; letters have one.
func readStatus(r io.Reader) (b Bounce, ok bool) {
	fields := textproto.NewReader(bufio.NewReader(r))
	for range 5 {
		h, err := fields.ReadMIMEHeader()
		if strings.EqualFold(strings.TrimSpace(h.Get("Action")), "failed") {
			b.Status = status.FindString(strings.TrimSpace(h.Get("Status")))
			if said := diagnostic.FindStringSubmatch(h.Get("Diagnostic-Code")); said != nil && (b.Status == "" || b.Status == "5.0.0") {
				b.Status = said[1] // Exim (2022) writes 5.0.0 whatever the next server said
			}
			var code smtp.EnhancedCode
			for i, part := range strings.SplitN(b.Status, ".", 3) {
				for _, c := range part {
					code[i] = code[i]*10 + int(c-'0')
				}
			}
			b.Hard = b.Status != "" && hard(500, code)
			return b, true
		}
		if err != nil {
			return b, false
		}
	}
	return b, false
}

// Signers returns the domains whose DKIM signatures of a mail are valid, in lower case. lookup
// returns the TXT records of a name. At most three signatures are looked at.
func Signers(raw []byte, lookup func(name string) ([]string, error)) (domains []string) {
	found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: lookup, MaxVerifications: 3})
	if err != nil && err != dkim.ErrTooManySignatures {
		return nil
	}
	for _, v := range found {
		if v.Err == nil {
			domains = append(domains, strings.ToLower(v.Domain))
		}
	}
	return domains
}
