package mail

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"net/smtp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/mail/mailtest"
	"stoa/protocol"
	"stoa/protocol/must"
)

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	k := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	return k
}

// records answers for the DNS with the key of a sender.
func records(s *Sender) func(string) ([]string, error) {
	return func(name string) ([]string, error) {
		_, domain, _ := strings.Cut(s.From, "@")
		if name != s.Selector+"._domainkey."+domain {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		kind, public := publicKey(s.DKIM)
		return []string{"v=DKIM1; k=" + kind + "; p=" + public}, nil
	}
}

var invitation = []byte("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:mtg_1@node.example\r\n" +
	"DTSTAMP:20261120T232005Z\r\nDTSTART:20261201T053000Z\r\nDTEND:20261201T060000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")

// invites is an invitation with everything that a letter can have.
func invites(t *testing.T) Message {
	t.Helper()
	at := must.Get(time.Parse(time.RFC3339, "2026-11-20T23:20:05Z"))(t)
	return Message{
		ID: "mtg_1.0", To: "ravi@example.org", Subject: "निमंत्रण: आशा राव के साथ ३० मिनट, मंगलवार १ दिसंबर २०२६", Text: "नमस्ते\n.\nFrom the node\n",
		HTML: "<p>नमस्ते</p>", Calendar: &Calendar{"REQUEST", invitation}, Name: "आशा राव via stoa", ReplyTo: "asha@example.net", Date: at, Bounce: "mtg_1.0",
	}
}

// TestExim sends through a real mail server: the letter arrives whole, its DKIM
// signature is valid, a bounce comes back by LMTP to the address of the letter.
func TestExim(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t)
	l := must.Get(net.Listen("unix", server.Socket))(t)
	require.NoError(t, os.Chmod(server.Socket, 0o660))
	server.Let(t)
	s := &Sender{Server: server.Addr, Security: Plain, From: "calendar@node.example", Name: "Node", Host: "node.example", DKIM: rsaKey(t), Selector: "s1",
		ReturnKey: []byte("secret")}
	got := make(chan Incoming, 10)
	receiving(t, l, &Receiver{Host: "node.example", From: s.From, Return: Return{s.From, s.ReturnKey},
		Handle: func(_ context.Context, in Incoming) error { got <- in; return nil }})

	require.NoError(t, s.Send(t.Context(), invites(t)))
	raw := server.Next(t)
	require.Equal(t, []string{"node.example"}, Signers(raw, records(s)))
	tree, parts := treeOf(t, raw)
	require.Equal(t, strings.Join([]string{
		"multipart/mixed", " multipart/alternative", "  text/plain; charset=UTF-8", "  text/html; charset=UTF-8",
		"  text/calendar; charset=UTF-8; component=VEVENT; method=REQUEST", ` application/ics; name=invite.ics`,
	}, "\n"), tree)
	require.Equal(t, "नमस्ते\n.\nFrom the node\n", strings.ReplaceAll(parts[0], "\r\n", "\n"))
	require.Equal(t, string(invitation), parts[2])
	require.Equal(t, string(invitation), parts[3])
	m := must.Get(netmail.ReadMessage(bytes.NewReader(raw)))(t)
	require.Equal(t, "<"+Return{s.From, s.ReturnKey}.Address("mtg_1.0")+">", m.Header.Get("Return-Path"))
	subject := must.Get(new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")))(t)
	require.Equal(t, invites(t).Subject, subject)

	// Accepted and then not deliverable: the report comes back to the letter's own address.
	gone := invites(t)
	gone.To = "gone@example.org"
	require.NoError(t, s.Send(t.Context(), gone))
	in := <-got
	require.Equal(t, "mtg_1.0", in.Bounced)
	b, ok := ReadBounce(in.Raw)
	require.True(t, ok, string(in.Raw))
	require.Equal(t, Bounce{"5.1.1", true}, b)

	// Refused at once.
	for to, want := range map[string]struct{ final, recipient bool }{
		"unknown@example.org": {true, true}, "stranger@example.org": {true, false}, "later@example.org": {false, false},
	} {
		refused := invites(t)
		refused.To = to
		err := s.Send(t.Context(), refused)
		require.Error(t, err, to)
		require.Equal(t, want.final, protocol.CodeOf(err) == protocol.InvalidRequest, to)
		require.Equal(t, want.recipient, errors.Is(err, ErrRecipient), to)
		require.NotContains(t, err.Error(), "secret", to)
	}

	// An answer to the node's address comes by LMTP with the signature of its sender.
	answer := &Sender{From: "ravi@example.org", Name: "Ravi", Host: "example.org", DKIM: rsaKey(t), Selector: "x"}
	reply := must.Get(answer.Compose(Message{ID: "r1", To: s.From, Subject: "Declined", Text: "no"}))(t)
	require.NoError(t, smtp.SendMail(server.Addr, nil, answer.From, []string{s.From}, reply))
	in = <-got
	require.Empty(t, in.Bounced)
	require.Equal(t, []string{"example.org"}, Signers(in.Raw, records(answer)))
	// What is not the node's is refused by the node, and the mail server tells the sender.
	require.NoError(t, smtp.SendMail(server.Addr, nil, s.From, []string{"somebody@node.example"}, reply))
	in = <-got
	require.Empty(t, in.Bounced, "the report about it")
	b, ok = ReadBounce(in.Raw)
	require.True(t, ok)
	require.True(t, strings.HasPrefix(b.Status, "5."), b.Status)
}

// treeOf returns the types of a letter's parts, one a line, and the decoded parts
// that are no multiparts.
func treeOf(t *testing.T, raw []byte) (tree string, parts []string) {
	t.Helper()
	m := must.Get(netmail.ReadMessage(bytes.NewReader(raw)))(t)
	var lines []string
	var walk func(indent, contentType, encoding string, body io.Reader)
	walk = func(indent, contentType, encoding string, body io.Reader) {
		kind, params, err := mime.ParseMediaType(contentType)
		require.NoError(t, err)
		within := params["boundary"]
		delete(params, "boundary")
		lines = append(lines, indent+mime.FormatMediaType(kind, params))
		if within == "" {
			switch encoding {
			case "base64":
				body = base64.NewDecoder(base64.StdEncoding, body)
			case "quoted-printable": // NextPart decoded that of parts
				body = quotedprintable.NewReader(body)
			}
			text := must.Get(io.ReadAll(body))(t)
			parts = append(parts, string(text))
			return
		}
		for r := multipart.NewReader(body, within); ; {
			p, err := r.NextPart() // decodes quoted-printable
			if err == io.EOF {
				return
			}
			require.NoError(t, err)
			walk(indent+" ", p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p)
		}
	}
	walk("", m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
	return strings.Join(lines, "\n"), parts
}
