package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// parseServe reads the settings of serve as the program does.
func parseServe(t testing.TB, args ...string) (serveCmd, error) {
	t.Helper()
	at, err := parse(&cli{}, append([]string{"serve"}, args...))
	if err != nil {
		return serveCmd{}, err
	}
	return *at.Target().(*serveCmd), nil
}

func TestConfig_Order(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stoa.toml")
	require.NoError(t, os.WriteFile(file,
		[]byte("listen = \"127.0.0.1:1\"\nname = \"from the file\"\ntrusted-proxies = [\"10.0.0.0/8\", \"192.168.0.0/16\"]\nwrite-rate = 7.5\nchain = "+
			"[\"1=https://a.example,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432\", \"8453=https://b.example,"+
			"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432\"]\nallow-private-peers = true\n"), 0o600))

	c := must.Get(parseServe(t))(t)
	require.Equal(t, "127.0.0.1:8080", c.Listen, "no setting is needed")
	require.NoError(t, c.Config.Validate())

	c = must.Get(parseServe(t, "--config", file))(t)
	require.Equal(t, "127.0.0.1:1", c.Listen)
	require.Equal(t, []string{"10.0.0.0/8", "192.168.0.0/16"}, c.TrustedProxies)
	require.Len(t, c.Chain, 2)
	require.NoError(t, c.Config.Validate())
	require.InDelta(t, 7.5, c.WriteRate, 0)
	require.True(t, c.AllowPrivatePeers)

	t.Setenv("STOA_LISTEN", "127.0.0.1:2")
	c = must.Get(parseServe(t, "--config", file))(t)
	require.Equal(t, "127.0.0.1:2", c.Listen, "the environment wins over the file")
	require.Equal(t, "from the file", c.Name)

	c = must.Get(parseServe(t, "--config", file, "--listen", "127.0.0.1:3"))(t)
	require.Equal(t, "127.0.0.1:3", c.Listen, "a flag wins over both")
}

// TestConfig_HTTPS: a name is enough for HTTPS; what does not fit together is said.
func TestConfig_HTTPS(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, fault string }{
		{"--domain stoa.example", ""}, {"--domain stoa.example --domain www.stoa.example", ""}, {"--domain stoa.example --http-listen=", ""},
		{"--base-url https://stoa.example --tls-cert c --tls-key k", ""},
		{"--domain 192.0.2.1", "domain:"}, {"--domain stoa", "domain:"}, {"--domain *.stoa.example", "domain:"}, {"--domain stoa.example:443", "domain:"},
		{"--tls-cert c --tls-key k", "base-url:"}, {"--base-url https://stoa.example --tls-cert c", "tls-cert:"},
		{"--domain stoa.example --tls-cert c --tls-key k", "domain:"}, {"--domain stoa.example --acme-directory http://ca.example", "acme-directory:"},
		{"--domain stoa.example --http-listen nonsense", "http-listen:"},
	} {
		if _, err := parseServe(t, strings.Fields(tt.args)...); tt.fault == "" {
			require.NoError(t, err, tt.args)
		} else {
			require.ErrorContains(t, err, tt.fault, tt.args)
		}
	}
}

func TestConfig_Faults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stoa.toml")
	require.NoError(t, os.WriteFile(file, []byte("lisen = \"x\"\n"), 0o600))
	require.ErrorContains(t, must.Err(parseServe(t, "--config", file)), `no setting "lisen"`)

	var out, errs bytes.Buffer
	code := run(context.Background(), []string{"serve", "--listen", "nonsense", "--base-url", "ftp://x", "--chain", "1=x", "--trusted-proxies", "all",
		"--content-signal", "ai-train=perhaps", "--data", t.TempDir()}, strings.NewReader(""), &out, &errs)
	require.Equal(t, exitUsage, code)
	for _, part := range []string{"listen:", "base-url:", "chain:", "trusted-proxies:", "content-signal:"} {
		require.Contains(t, errs.String(), part, "all faults at once")
	}
	errs.Reset()
	require.Equal(t, exitUsage, run(context.Background(), []string{"serve", "--listen", "0.0.0.0:8080", "--data", t.TempDir()}, strings.NewReader(""),
		&out, &errs))
	require.Contains(t, errs.String(), "set the public address")
	errs.Reset()
	require.Equal(t, exitUsage, run(context.Background(), []string{"serve", "--base-url", "http://stoa.example", "--data", t.TempDir()},
		strings.NewReader(""), &out, &errs))
	require.Contains(t, errs.String(), "must be https")
	require.Equal(t, exitUsage, run(context.Background(), []string{"sing"}, strings.NewReader(""), &out, &errs))
	require.Equal(t, exitDone, run(context.Background(), []string{"--help"}, strings.NewReader(""), &out, &errs))
	require.Equal(t, exitDone, run(context.Background(), []string{"version", "--json"}, strings.NewReader(""), &out, &errs))
}

func FuzzConfig(f *testing.F) {
	f.Add("listen = \"127.0.0.1:1\"")
	f.Add("chain = [\"1=https://a.example,0x8004A169FB4a3325136EB29fA0ceB6D2e539a432\"]")
	f.Add("[serve]\nlisten = 1")
	f.Add("write-rate = nan\nname = 1979-05-27")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "stoa.toml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		if c, err := parseServe(t, "--config", file); err == nil {
			_ = c.Config.Validate() // says what is wrong, or nothing; it never panics
		}
	})
}

func TestPowSolve(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	challenge := `{"parameters":{"algorithm":"PBKDF2/SHA-256","cost":10,"data":{"aud":"a","kid":"k","purpose":"contact"},"expiresAt":1,"keyLength":32,` +
		`"keyPrefix":"0","nonce":"00","salt":"00"},"signature":"00"}`
	require.Equal(t, exitDone, run(context.Background(), []string{"pow", "solve"}, strings.NewReader(challenge), &out, &errs), "%s", &errs)
	require.Contains(t, out.String(), `"counter":`)
	require.Equal(t, exitUsage, run(context.Background(), []string{"pow", "solve"}, strings.NewReader("{}"), &out, &errs))
}

func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "me.jwk")
	var out, errs bytes.Buffer
	require.Equal(t, exitDone, run(context.Background(), []string{"keygen", file}, strings.NewReader(""), &out, &errs), "%s", &errs)
	require.Equal(t, exitFailed, run(context.Background(), []string{"keygen", file}, strings.NewReader(""), &out, &errs), "a key is never overwritten")
	out.Reset()
	body := `{"kind":"offer"}`
	require.Equal(t, exitDone, run(context.Background(), []string{"sign", "--key", file, "--body", "-", "https://n.example/api/public/board"},
		strings.NewReader(body), &out, &errs), "%s", &errs)
	request := "POST /api/public/board HTTP/1.1\r\nHost: n.example\r\nContent-Length: 16\r\n" + strings.ReplaceAll(out.String(), "\n", "\r\n") + "\r\n" + body
	out.Reset()
	require.Equal(t, exitDone, run(context.Background(), []string{"verify", "--key", file, "--base", "https://n.example"}, strings.NewReader(request),
		&out, &errs), "%s", &errs)
	require.Contains(t, out.String(), "verified: keyid ")
	spoiled := strings.Replace(request, body, `{"kind":"OFFER"}`, 1)
	require.Equal(t, exitFailed, run(context.Background(), []string{"verify", "request", "--key", file, "--base", "https://n.example"}, strings.NewReader(spoiled),
		&out, &errs))
	require.Contains(t, errs.String(), "digest-mismatch")
}

// TestSeed_Rooms: the agents of the local world promise nothing that only a room
// can do which is not there.
func TestSeed_Rooms(t *testing.T) {
	rooms := protocol.ProfileDraft{Kind: protocol.Person}.AllCapabilities(protocol.Rooms{Meetings: true, AttentionBoard: true})
	require.Len(t, rooms, 2)
	var agents []struct{ Profile protocol.ProfileDraft }
	require.NoError(t, json.Unmarshal(seedProfiles, &agents))
	require.NotEmpty(t, agents)
	for _, a := range agents {
		require.False(t, a.Profile.Agent != nil && a.Profile.Agent.AcceptingMeetingRequests, a.Profile.Handle)
		require.NotContains(t, a.Profile.Description, "meeting")
		for _, c := range a.Profile.Capabilities {
			require.False(t, slices.ContainsFunc(rooms, func(room protocol.Capability) bool { return room.ID == c.ID }), "%s: %s", a.Profile.Handle, c.ID)
		}
	}
}

// TestVerifyReceipt checks a receipt offline: with a key file, for a client, of a node.
func TestVerifyReceipt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "node.jwk")
	pair := must.Get(key.GenerateEd25519())(t)
	require.NoError(t, os.WriteFile(file, must.Get(key.MarshalSet([]key.Public{pair.Published()}))(t), 0o600))
	claims := must.Get(json.Marshal(protocol.OrderReceiptClaims{Issuer: "https://n.example", Order: "R-1", Shop: "rao",
		Client: "eip155:1:0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
		Amount: "180.00", Currency: "INR", PaidAt: 1, IssuedAt: 2, ID: protocol.NewID(protocol.ReceiptID, time.Now())}))(t)
	token := must.Get(pair.SignCompact(claims, protocol.OrderReceiptType))(t)
	other := must.Get(pair.SignCompact(claims, "JWT"))(t)
	for _, c := range []struct {
		name, token string
		args        []string
		code        int
		says        string
	}{
		{"good", token, nil, exitDone, "not known offline"},
		{"of the node", token + "\n", []string{"--node", "https://n.example/"}, exitDone, "not known offline"},
		{"of another node", token, []string{"--node", "https://m.example"}, exitProblem, "says that https://n.example issued it"},
		{"for the client", token, []string{"--client", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}, exitDone, ""},
		{"for another client", token, []string{"--client", "0x1"}, exitProblem, "it is for the client"},
		{"spoiled", token[:len(token)-4] + "AAAA", nil, exitProblem, "does not match"},
		{"another type", other, nil, exitProblem, `typ \"JWT\"`},
		{"no receipt", "hello", nil, exitProblem, "not a compact JWS"},
	} {
		var out, errs bytes.Buffer
		got := run(context.Background(), append([]string{"verify", "receipt", "--keys", file}, c.args...), strings.NewReader(c.token), &out, &errs)
		require.Equal(t, c.code, got, "%s: %s", c.name, &errs)
		require.Contains(t, errs.String(), strings.ReplaceAll(c.says, `\"`, `"`), c.name)
		require.Equal(t, c.code == exitDone, strings.Contains(out.String(), "INR 180.00"), c.name)
	}
}
