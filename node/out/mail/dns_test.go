package mail

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// zone answers for the DNS.
func zone(records map[string][]string) func(context.Context, string) ([]string, error) {
	return func(_ context.Context, name string) ([]string, error) {
		if found, ok := records[name]; ok {
			return found, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
}

// TestCheckDNS: without records the lines to add are printed, with those lines there
// is no fault, and each common mistake is named.
func TestCheckDNS(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]string{
		"host": "mail.example.org:587", "IPv4": "192.0.2.1:25", "IPv6": "[2001:db8::1]:25", "this machine": "127.0.0.1:25",
	} {
		s := &Sender{Server: server, From: "stoa@node.example", DKIM: rsaKey(t), Selector: "s1"}
		added := map[string][]string{}
		for _, r := range s.CheckDNS(t.Context(), zone(nil)) {
			require.Contains(t, r.Fault, "add it", name)
			added[r.Name] = []string{"some-verification=1", r.Want}
			value := strings.TrimPrefix(r.Line(), r.Name+". IN TXT ")
			for _, part := range strings.Split(strings.Trim(value, `"`), `" "`) {
				require.LessOrEqual(t, len(part), 255)
			}
			require.Equal(t, r.Want, strings.ReplaceAll(strings.Trim(value, `"`), `" "`, ""))
		}
		require.Len(t, added, 3)
		for _, r := range s.CheckDNS(t.Context(), zone(added)) {
			require.Empty(t, r.Fault, name)
		}
		require.Equal(t, map[string]string{"host": "v=spf1 a:mail.example.org -all", "IPv4": "v=spf1 ip4:192.0.2.1 -all",
			"IPv6": "v=spf1 ip6:2001:db8::1 -all", "this machine": "v=spf1 mx -all"}[name], added["node.example"][1])
		checked := Signers(composed(t, s), func(name string) ([]string, error) { return added[name][1:], nil })
		require.Equal(t, []string{"node.example"}, checked, "the line for DKIM verifies what the node sends")
	}

	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	s := &Sender{Server: "mail.example.org:587", From: "stoa@node.example", DKIM: private, Selector: "s1"}
	for fault, records := range map[string]map[string][]string{
		"there are several":      {"node.example": {"v=spf1 mx -all", "v=spf1 a -all"}},
		"lets everybody":         {"node.example": {"v=spf1 mx +all"}},
		"ends with ?all":         {"node.example": {"v=spf1 mx ?all"}},
		"another key":            {"s1._domainkey.node.example": {"v=DKIM1; k=ed25519; p=AAAA"}},
		"it has no p=":           {"_dmarc.node.example": {"v=DMARC1; rua=mailto:a@example.org"}},
		"the node signs nothing": nil,
	} {
		sender := *s
		if records == nil {
			sender.DKIM = nil
		}
		var faults []string
		for _, r := range sender.CheckDNS(t.Context(), zone(records)) {
			faults = append(faults, r.Fault)
		}
		require.Contains(t, strings.Join(faults, "\n"), fault)
	}
	own := zone(map[string][]string{"node.example": {"v=spf1 include:relay.example ~all"}, "_dmarc.node.example": {"v=DMARC1; p=none"}})
	for _, r := range s.CheckDNS(t.Context(), own) {
		require.Equal(t, r.Purpose == "DKIM", r.Fault != "", "the operator's own choice stands: %+v", r)
	}
	down := func(context.Context, string) ([]string, error) { return nil, errors.New("timeout") }
	for _, r := range s.CheckDNS(t.Context(), down) {
		require.Contains(t, r.Fault, "did not answer")
	}
}

func composed(t *testing.T, s *Sender) []byte {
	t.Helper()
	raw, err := s.Compose(Message{ID: "1", To: "a@example.org", Subject: "s", Text: "t"})
	require.NoError(t, err)
	return raw
}

// TestWriteKey: the key that it writes is one that ReadKey reads, and no file is overwritten.
func TestWriteKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dkim.pem")
	require.NoError(t, WriteKey(file))
	k, err := ReadKey(file)
	require.NoError(t, err)
	kind, public := publicKey(k)
	require.Equal(t, "rsa", kind)
	require.Greater(t, len(public), 380, "2048 bits")
	require.ErrorIs(t, WriteKey(file), os.ErrExist)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
