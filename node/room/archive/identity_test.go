package archive_test

import (
	"bytes"
	"context"
	"crypto"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/node/room/archive"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// registry is a chain that grants one key to one identity.
type registry struct {
	id, keyid string
	key       crypto.PublicKey
	err       error
}

func (r registry) Authority(_ context.Context, id, keyid string) (integrity.Grant, error) {
	if r.err != nil {
		return integrity.Grant{}, r.err
	}
	if id != r.id || keyid != r.keyid {
		return integrity.Grant{}, protocol.Errorf(protocol.KeyUnknown, "the chain gives this key no authority for the identity")
	}
	return integrity.Grant{Key: r.key, Owner: "0xa", Block: 7, BlockHash: "0x7"}, nil
}

func (r registry) Enrolment(ctx context.Context, id, keyid string) (e storage.Enrolment, jwk []byte, err error) {
	if _, err := r.Authority(ctx, id, keyid); err != nil {
		return e, nil, err
	}
	jwk, err = key.MarshalPublic(key.Public{Key: r.key, Thumbprint: keyid, ID: keyid, Use: "sig"})
	return storage.Enrolment{ERC8004: id, KeyID: keyid, Owner: "0xa", Wallet: "0xa", Block: 7, BlockHash: "0x7"}, jwk, err
}

// TestArchive_Identity: a chain identity comes along when the chain vouches for a
// key that is shown to be the bearer's, and proves the posts it signed.
func TestArchive_Identity(t *testing.T) {
	t.Parallel()
	const id = "eip155:31337:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"
	one := nodetest.NewMover(t)
	settle(one)
	var keys protocol.Keys
	require.NoError(t, one.Call(protocol.ListKeys.Operation, map[string]any{"handle": "asha"}, nil, &keys))
	keyid := keys.Items[0].KeyID
	require.NoError(t, one.Admin().PutIdentity(t.Context(), "asha", id, keyid))
	secret := one.TokenOf("asha", "t")
	require.NoError(t, one.CallWith(secret, protocol.PostToBoard.Operation, map[string]any{"kind": "offer", "title": "On chain", "body": "b"}, nil, nil))
	raw := export(one, map[string]any{"handle": "asha", "passphrase": passphrase})
	pair, err := one.Keys.Agent(t.Context(), "asha", keyid)
	require.NoError(t, err)
	grants := registry{id: id, keyid: keyid, key: pair.Public()}

	for name, c := range map[string]struct {
		chain      registry
		passphrase string
		operator   bool
		identity   string
		code       protocol.Code
	}{
		"granted, with the key":    {chain: grants, passphrase: passphrase, identity: "enrolled"},
		"granted, without the key": {chain: grants, identity: "left-out"},
		"the operator vouches":     {chain: grants, operator: true, identity: "enrolled"},
		"another key":              {chain: registry{id: id, keyid: "x", key: pair.Public()}, passphrase: passphrase, identity: "left-out"},
		"the chain cannot be read": {chain: registry{err: protocol.Errorf(protocol.ChainUnavailable, "later")}, passphrase: passphrase,
			code: protocol.ChainUnavailable},
		"another profile here has it": {chain: grants, passphrase: passphrase, identity: "left-out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			two := nodetest.NewMover(t)
			if name == "another profile here has it" {
				require.NoError(t, two.Admin().PutIdentity(t.Context(), "home", id, keyid))
			}
			room := *two.Archive
			room.Chain = c.chain
			file := must.Get(os.Create(t.TempDir() + "/a"))(t)
			defer file.Close()
			must.Get(file.Write(raw))(t)
			var account protocol.Account
			require.NoError(t, two.CallWith(two.AccountToken("home", "all", protocol.ScopeAccount), protocol.GetAccount.Operation, nil, nil, &account))
			order := archive.Order{ImportRequest: protocol.ImportRequest{Passphrase: c.passphrase}, Limits: archive.OwnerLimits,
				By: protocol.Caller{Standing: protocol.Session, Account: account.ID}}
			if c.operator {
				order.By, order.Vouch = protocol.Caller{Standing: protocol.Operator}, true
			}
			report, err := room.Read(t.Context(), file, order)
			require.Equal(t, c.code, protocol.CodeOf(err), "%v", err)
			if c.code != "" {
				require.Equal(t, protocol.NotFound, protocol.CodeOf(must.Err(two.Admin().Profile(t.Context(), "asha"))))
				return
			}
			require.Equal(t, c.identity, report.Identity, "%v", report.Notes)
			page := must.JSON[protocol.Page[protocol.Post]]([]byte(get(two, "/api/public/board?q=chain")))(t)
			require.Len(t, page.Items, 1)
			// Also where another profile has it: the key is the bearer's, and the chain's.
			proven := c.identity == "enrolled" || strings.HasPrefix(name, "another profile")
			require.Equal(t, proven, page.Items[0].Author.Verified, "%v", report.Notes)
			if c.identity == "enrolled" {
				require.Equal(t, id, *page.Items[0].Author.ERC8004)
				require.Equal(t, profile(one), profile(two), "identity and its addresses are the same")
			}
			if c.identity == "enrolled" && c.passphrase != "" { // else the node cannot sign the directory
				jwks := "/.well-known/service-agents/" + keyid + "/jwks.json"
				require.Equal(t, get(one, jwks), get(two, jwks))
			}
		})
	}
	require.False(t, bytes.Contains(raw, []byte(passphrase)))
	require.NotContains(t, strings.ToLower(nodetest.Unpacked(t, raw)), "begin private")
}
