package passkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/passkey"
	"stoa/identity/passkey/passkeytest"
	"stoa/protocol/must"
)

const (
	base = "https://node.example:8443"
	user = "acc_01k9y3v6k8e5w9q2x4z7c1m0ad"
)

var challenge = strings.Repeat("0123456789abcdef", 5)

func TestNew(t *testing.T) {
	t.Parallel()
	for address, domain := range map[string]string{
		base: "node.example", "https://node.example": "node.example", "http://localhost:8080": "localhost", "http://a.localhost": "a.localhost",
	} {
		s, err := passkey.New(address, "A node")
		require.NoError(t, err, address)
		require.Equal(t, domain, s.Domain)
	}
	for _, address := range []string{"http://127.0.0.1:8080", "https://192.0.2.1", "https://[2001:db8::1]:8443", "http://node.example", "https://"} {
		require.ErrorIs(t, must.Err(passkey.New(address, "A node")), passkey.ErrNoDomain, address)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	s := must.Get(passkey.New(base, "A node"))(t)
	d := passkeytest.New(base, "node.example", user)
	d.Eligible, d.BackedUp = true, true
	c := must.Get(s.Register(user, challenge, d.Register(challenge)))(t)
	require.True(t, c.BackupEligible && c.BackedUp)
	require.Equal(t, uint32(1), c.Count)
	require.Equal(t, challenge, passkey.Challenge(d.Register(challenge).ClientData))
	require.Empty(t, passkey.Challenge("not base64!"))
	require.Empty(t, passkey.Challenge("bm90IEpTT04"))

	for name, change := range map[string]func(*passkeytest.Device){
		"another site":          func(d *passkeytest.Device) { d.Origin = "https://evil.example" },
		"another port":          func(d *passkeytest.Device) { d.Origin = "https://node.example" },
		"another domain":        func(d *passkeytest.Device) { d.Domain = "evil.example" },
		"no finger, no PIN":     func(d *passkeytest.Device) { d.Unverified = true },
		"a signature instead":   func(d *passkeytest.Device) { d.Type = "webauthn.get" },
		"a frame elsewhere":     func(d *passkeytest.Device) { d.Cross = true },
		"a copy that cannot be": func(d *passkeytest.Device) { d.BackedUp = true },
	} {
		d := passkeytest.New(base, "node.example", user)
		change(d)
		require.ErrorIs(t, must.Err(s.Register(user, challenge, d.Register(challenge))), passkey.ErrInvalid, name)
	}
	good := passkeytest.New(base, "node.example", user).Register(challenge)
	for name, r := range map[string]passkey.Registration{
		"nothing":           {},
		"another challenge": passkeytest.New(base, "node.example", user).Register("f" + challenge),
		"another id":        {ID: "q1w2e3r4t5y6u7i8o9p0", ClientData: good.ClientData, Attestation: good.Attestation},
		"half":              {ID: good.ID, ClientData: good.ClientData, Attestation: good.Attestation[:100]},
		"more":              {ID: good.ID, ClientData: good.ClientData, Attestation: good.Attestation + "AAAA"},
	} {
		require.ErrorIs(t, must.Err(s.Register(user, challenge, r)), passkey.ErrInvalid, name)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	s := must.Get(passkey.New(base, "A node"))(t)
	registered := func(change func(*passkeytest.Device)) (*passkeytest.Device, passkey.Credential) {
		d := passkeytest.New(base, "node.example", user)
		if change != nil {
			change(d)
		}
		c := must.Get(s.Register(user, challenge, d.Register(challenge)))(t)
		return d, c
	}
	d, c := registered(func(d *passkeytest.Device) { d.Eligible = true })
	now := must.Get(s.Verify(user, challenge, c, d.Sign(challenge)))(t)
	require.False(t, now.Cloned || now.BackedUp)
	require.Equal(t, uint32(2), now.Count)
	d.BackedUp = true
	now = must.Get(s.Verify(user, challenge, now, d.Sign(challenge)))(t)
	require.True(t, now.BackedUp, "a copy was made since")
	d.Count = 1
	require.True(t, must.Get(s.Verify(user, challenge, now, d.Sign(challenge)))(t).Cloned, "the counter went back")

	d, c = registered(func(d *passkeytest.Device) { d.Count = 0 })
	for range 2 {
		c = must.Get(s.Verify(user, challenge, c, d.Sign(challenge)))(t)
		require.False(t, c.Cloned, "it does not count")
	}
	for name, change := range map[string]func(*passkeytest.Device){
		"another site":          func(d *passkeytest.Device) { d.Origin = "https://evil.example" },
		"another domain":        func(d *passkeytest.Device) { d.Domain = "evil.example" },
		"no finger, no PIN":     func(d *passkeytest.Device) { d.Unverified = true },
		"another account":       func(d *passkeytest.Device) { d.User = "acc_other" },
		"no account":            func(d *passkeytest.Device) { d.User = "" },
		"a new passkey":         func(d *passkeytest.Device) { d.Type = "webauthn.create" },
		"a changed eligibility": func(d *passkeytest.Device) { d.Eligible = true },
		"a frame elsewhere":     func(d *passkeytest.Device) { d.Cross = true },
	} {
		d, c := registered(nil)
		change(d)
		require.ErrorIs(t, must.Err(s.Verify(user, challenge, c, d.Sign(challenge))), passkey.ErrInvalid, name)
	}
	d, c = registered(nil)
	other, _ := registered(nil)
	require.ErrorIs(t, must.Err(s.Verify(user, challenge, c, d.Sign("f"+challenge))), passkey.ErrInvalid, "another challenge")
	require.ErrorIs(t, must.Err(s.Verify(user, challenge, c, other.Sign(challenge))), passkey.ErrInvalid, "another passkey")
	mixed := d.Sign(challenge)
	mixed.Signature = other.Sign(challenge).Signature
	require.ErrorIs(t, must.Err(s.Verify(user, challenge, c, mixed)), passkey.ErrInvalid, "another key's signature")
	require.ErrorIs(t, must.Err(s.Verify(user, challenge, c, passkey.Assertion{})), passkey.ErrInvalid, "nothing")
}
