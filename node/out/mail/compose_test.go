package mail

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestCompose_Invitation: the bytes of an invitation, which are the same at each attempt.
func TestCompose_Invitation(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "calendar@node.example", Name: "Node", Host: "node.example"}
	raw, err := s.Compose(invites(t))
	require.NoError(t, err)
	const file = "testdata/invitation.eml"
	if *update {
		require.NoError(t, os.WriteFile(file, raw, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test ./node/out/mail -update writes it")
	require.Equal(t, string(want), string(raw))
	for line := range strings.SplitSeq(string(raw), "\r\n") {
		require.LessOrEqual(t, len(line), 78, line)
		require.NotContains(t, line, "\n")
	}
	other := invites(t)
	other.ID = "mtg_1.1"
	moved := must.Get(s.Compose(other))(t)
	found := regexp.MustCompile(`boundary=([0-9a-f]+)`)
	bounds := append(found.FindAllString(string(raw), -1), found.FindAllString(string(moved), -1)...)
	require.Len(t, bounds, 4)
	for i, b := range bounds {
		require.NotContains(t, bounds[:i], b)
	}

	s.DKIM, s.Selector = rsaKey(t), "s1"
	first := must.Get(s.Compose(invites(t)))(t)
	second := must.Get(s.Compose(invites(t)))(t)
	signature := regexp.MustCompile(`(?s)^DKIM-Signature: .*?\r\n([A-Z])`)
	require.Equal(t, string(signature.ReplaceAll(first, []byte("$1"))), string(signature.ReplaceAll(second, []byte("$1"))))
}

// TestCompose_Text: words in a letter that look like the boundary of a part stay as they are.
func TestCompose_Text(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "calendar@node.example", Name: "Node", Host: "node.example"}
	m := invites(t)
	m.Subject = "boundary=" + strings.Repeat("0", 40)
	m.Text = "Content-Type: multipart/mixed;\r\n boundary=" + strings.Repeat("0", 40) + "\r\n\r\n--" + strings.Repeat("0", 40) + "--\r\n"
	raw := must.Get(s.Compose(m))(t)
	_, parts := treeOf(t, raw)
	require.Len(t, parts, 4)
	require.Equal(t, m.Text, parts[0])
	require.Contains(t, string(raw), "Subject: "+m.Subject)
	m.Calendar, m.HTML = nil, ""
	raw = must.Get(s.Compose(m))(t)
	tree, parts := treeOf(t, raw)
	require.Equal(t, "text/plain; charset=UTF-8", tree)
	require.Equal(t, m.Text, parts[0])
}

// TestSignature: it is valid for either kind of key, and not after a header was
// added or changed, or a part of the text.
func TestSignature(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "calendar@node.example", Name: "Node", Host: "node.example", DKIM: rsaKey(t), Selector: "s1"}
	raw := must.Get(s.Compose(invites(t)))(t)
	require.Equal(t, []string{"node.example"}, Signers(raw, records(s)))
	stranger := *s
	stranger.DKIM = rsaKey(t)
	require.Empty(t, Signers(raw, records(&stranger)))
	for _, added := range []string{
		"From: evil@example.org", "To: x@example.org", "Cc: x@example.org", "Reply-To: x@example.org", "Subject: Pay now", "Date: Mon, 1 Jan 2024 00:00:00 +0000",
		"Content-Type: text/plain", "Message-ID: <x@y>", "In-Reply-To: <x@y>", "MIME-Version: 1.1",
	} {
		require.Empty(t, Signers(append([]byte(added+"\r\n"), raw...), records(s)), added)
	}
	require.NotEmpty(t, Signers(append([]byte("Received: from x\r\n"), raw...), records(s)), "servers add that")
	require.Empty(t, Signers(bytes.Replace(raw, []byte("From the node"), []byte("From the bank"), 1), records(s)))
	require.Empty(t, Signers(bytes.Replace(raw, []byte("mtg_1.0@"), []byte("mtg_1.1@"), 1), records(s)))
	require.Empty(t, Signers([]byte("not a mail"), records(s)))
}

func TestCompose_Refused(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "calendar@node.example", Host: "node.example", Now: func() time.Time { return time.Unix(0, 0) }}
	for name, change := range map[string]func(*Message){
		"line in the name":       func(m *Message) { m.Name = "x\r\nBcc: a@example.org" },
		"line in the answer to":  func(m *Message) { m.ReplyTo = "a@example.org\nBcc: b@example.org" },
		"no answer to":           func(m *Message) { m.ReplyTo = "asha" },
		"no recipient":           func(m *Message) { m.To = "" },
		"other method":           func(m *Message) { m.Calendar = &Calendar{"REQUEST; x=y", nil} },
		"publish is no mail":     func(m *Message) { m.Calendar = &Calendar{"PUBLISH", nil} },
		"recipient is two":       func(m *Message) { m.To = "a@example.org, b@example.org" },
		"line in the recipient":  func(m *Message) { m.To = "a@example.org\r\nBcc: b@example.org" },
		"line in the message id": func(m *Message) { m.ID = "x\r\n" },
	} {
		m := invites(t)
		change(&m)
		_, err := s.Compose(m)
		require.Error(t, err, name)
	}
	raw := must.Get(s.Compose(Message{ID: "1", To: "a@example.org", Name: `A "B", <c@example.org>`, Subject: "s", Text: "t"}))(t)
	require.Contains(t, string(raw), `From: "A  B , <c@example.org>" <calendar@node.example>`, "a name is no address")
}
