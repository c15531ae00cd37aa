package mail

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
	gomail "github.com/wneessen/go-mail"

	"stoa/protocol"
)

// signed are the headers that DKIM covers. One that is named once more than it is there cannot be
// added to the letter afterwards (RFC 6376 §5.4.2).
var signed = []string{
	"From", "From", "To", "To", "Cc", "Reply-To", "Reply-To", "Subject", "Subject", "Date", "Date", "Message-ID", "Message-ID",
	"In-Reply-To", "Auto-Submitted", "MIME-Version", "MIME-Version", "Content-Type", "Content-Type", "Content-Transfer-Encoding",
}

// Compose returns the letter as it is sent. A letter with a calendar has the structure that mail
// programs show buttons for: the calendar is the last alternative of the text, and attached too.
func (s *Sender) Compose(m Message) ([]byte, error) {
	if strings.ContainsAny(m.Subject+m.To+m.ID+m.Name+m.ReplyTo, "\r\n\x00") { // they would add a header line
		return nil, protocol.Errorf(protocol.InvalidRequest, "a header of the message contains a line break")
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	name := s.Name
	if m.Name != "" {
		name = m.Name
	}
	if err := errors.Join(msg.FromFormat(name, s.From), msg.To(m.To)); err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "an address of the message is not valid")
	}
	if m.ReplyTo != "" {
		if err := msg.ReplyTo(m.ReplyTo); err != nil {
			return nil, protocol.Errorf(protocol.InvalidRequest, "the address for answers is not valid")
		}
	}
	if m.Date.IsZero() {
		m.Date = s.now()
	}
	msg.Subject(m.Subject)
	msg.SetDateWithValue(m.Date)
	msg.SetMessageIDWithValue(m.ID + "@" + s.Host)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	multiparts := 0
	if m.HTML != "" || m.Calendar != nil {
		multiparts++
	}
	if c := m.Calendar; c != nil {
		if c.Method != "REQUEST" && c.Method != "CANCEL" {
			return nil, fmt.Errorf("a letter invites or cancels: %q", c.Method)
		}
		// go-mail adds the charset, which the type must have (RFC 5545 §8.1).
		kind := gomail.ContentType("text/calendar; method=" + c.Method + "; component=VEVENT")
		msg.AddAlternativeString(kind, string(c.Object), gomail.WithPartEncoding(gomail.EncodingB64))
		err := msg.AttachReader("invite.ics", bytes.NewReader(c.Object), gomail.WithFileContentType("application/ics"))
		if err != nil {
			return nil, fmt.Errorf("attach the calendar: %w", err)
		}
		multiparts++
	}
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("write the message: %w", err)
	}
	return s.sign(fixed(raw.Bytes(), m.ID+"@"+s.Host, multiparts))
}

func (s *Sender) sign(raw []byte) ([]byte, error) {
	if s.DKIM == nil {
		return raw, nil
	}
	_, domain, _ := strings.Cut(s.From, "@")
	var out bytes.Buffer
	err := dkim.Sign(&out, bytes.NewReader(raw), &dkim.SignOptions{
		Domain: domain, Selector: s.Selector, Signer: s.DKIM, Hash: crypto.SHA256, HeaderKeys: signed,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		return nil, fmt.Errorf("sign the message: %w", err)
	}
	return out.Bytes(), nil
}

var boundary = regexp.MustCompile(`Content-Type: multipart/[a-z]+;\r\n boundary=([0-9a-f]+)\r\n`)

// fixed replaces the first n boundaries, which are random, by ones that follow from the id, so that
// each attempt has the same bytes. They come before any text of the letter.
func fixed(raw []byte, id string, n int) []byte {
	for i, found := range boundary.FindAllSubmatch(raw, n) {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", i, id))
		raw = bytes.ReplaceAll(raw, bytes.Clone(found[1]), []byte(hex.EncodeToString(sum[:])[:min(len(found[1]), 64)]))
	}
	return raw
}
