package attest

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/identity/eip4361"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
)

// peek returns the payload of a compact JWS that was not verified.
func peek(token string) ([]byte, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxSeen {
		return nil, fmt.Errorf("seen is not a compact JWS")
	}
	return base64.RawURLEncoding.Strict().DecodeString(parts[1])
}

// author checks who wrote the object, as far as its level claims.
func (c *check) author(ctx context.Context) {
	const compared, section = "the author of the object with what the node signed", "PROOF.md §3"
	by, claim, err := c.written()
	if err == nil && by == nil {
		c.add("author", Said, "nothing: no author has signed this object", "PROOF.md §1", "the node shows it")
		return
	}
	var shown, signed []byte
	if err == nil {
		shown, err = json.Marshal(by.Proof)
	}
	if err == nil {
		signed, err = json.Marshal(c.seen.Author)
	}
	if err == nil && (!bytes.Equal(shown, signed) || c.seen.Level != by.Proof.Level) {
		err = fmt.Errorf("the node signed another level or another proof of the author")
	}
	if err != nil {
		c.judge("author", err, compared, section, "")
		return
	}
	c.Level = by.Proof.Level
	c.judge("author", nil, compared, section, "%s, %s", c.Level, subjectOf(*by))
	a := authority{c: c, by: *by, keyid: text(by.KeyID)}
	known := false
	switch {
	case byChain(c.Level):
		known = a.state()
	case c.Level == protocol.ByDirectory, c.Level == protocol.ByProfileKey:
		known = a.ownKey()
	default:
		c.add("authority", Said, "nothing: the author has signed nothing that could be checked", "PROOF.md §5", "%s", levelWords[c.Level])
	}
	switch {
	case !known:
	case c.Kind == KindProfile:
		c.add("profile", Good, "the profile's key with the key that the identity grants", "PROOF.md §7.1", "the node says that it is %s", a.keyid)
	default:
		a.request(ctx, claim)
	}
}

var levelWords = map[protocol.ProofLevel]string{
	protocol.BySignIn:  "the node says that the owner of the profile was signed in",
	protocol.BySameKey: "the node says that the account at keyid signed, which anyone can make",
	protocol.ByNothing: "the node says that it does not know who wrote this",
}

func subjectOf(a protocol.Author) string {
	if a.Proof.Subject == nil {
		return "no author is verified"
	}
	return *a.Proof.Subject
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// authority is what the document says about the author's key. It implements integrity.Authority.
type authority struct {
	c     *check
	by    protocol.Author
	keyid string
	id    erc8004.ID
	view  erc8004.View
	own   crypto.PublicKey // of the document's member key
}

// state checks what the chain's state was at the block, and whether the block is known to be of the chain.
func (a *authority) state() bool {
	const compared, section = "header, account and storage of the registry with identity, owner, wallet and record", "EIP-1186, PROOF.md §5.1"
	d, proof := a.c.doc.Authority, a.by.Proof
	id, err := erc8004.ParseID(d.Identity)
	a.id = id
	switch {
	case err != nil:
	case d.Identity != text(a.by.ERC8004) || d.Identity != text(proof.Subject):
		err = fmt.Errorf("the authority is of another identity than the author")
	case proof.Block == nil || uint64(*proof.Block) != d.Block || text(proof.BlockHash) != d.BlockHash:
		err = fmt.Errorf("the authority is at another block than the author's proof")
	case proof.Owner != nil && *proof.Owner != d.Owner:
		err = fmt.Errorf("the authority has another owner than the author's proof")
	case d.Kind == OfNode:
		a.view = erc8004.StatedView(d.Owner, d.Wallet, d.Record)
		a.c.add("state", Said, compared, section, "the node read this at block %d: %s", d.Block, d.Reason)
		return a.ownKeyIfGiven() && a.record()
	case d.Kind != OfChain:
		err = fmt.Errorf("an authority of the kind %q does not show a chain identity", d.Kind)
	default:
		if a.view, err = (erc8004.StateProof{Layout: d.Layout, Header: d.Header, Nodes: d.Nodes}).Open(id); err == nil {
			err = a.view.Differs(d.Block, d.BlockHash, d.Owner, d.Wallet, d.Record)
		}
	}
	if !a.c.judge("state", err, compared, section, "%s is owned by %s at block %d", d.Identity, d.Owner, d.Block) {
		return false
	}
	a.block(d)
	return a.ownKeyIfGiven() && a.record()
}

// block compares the hash of the block with those that the verifier knows.
func (a *authority) block(d Authority) {
	const compared, section = "the hash of the block with one that you trust", "PROOF.md §5.1"
	switch {
	case len(a.c.Blocks) == 0:
		a.c.add("block", Open, compared, section, "no block hash was given; this is %s, block %d", d.BlockHash, d.Block)
	case slices.Contains(a.c.Blocks, d.BlockHash):
		a.c.add("block", Good, compared, section, "%s", d.BlockHash)
	default:
		a.c.add("block", Bad, compared, section, "%s is not the block that was given", d.BlockHash)
	}
}

// record checks the identity's signed list of keys, or that the account that signed is owner or wallet.
func (a *authority) record() bool {
	if account, ok := httpsig.ParseAccount(a.keyid); ok {
		const compared, section = "the account that signed with owner and wallet", "ERC-8128, PROOF.md §5.2"
		level := a.view.LevelOf(account.Address)
		var err error
		if level != a.c.Level || account.Chain != a.id.ChainID {
			err = fmt.Errorf("the account %s is not the %s of the identity", a.keyid, a.c.Level)
		}
		return a.c.judge("record", err, compared, section, "%s is its %s", a.keyid, a.c.Level)
	}
	const compared, section = "the record's keys with the author's, its signer with owner and wallet", "EIP-712, PROOF.md §5.2"
	switch {
	case a.c.Level != protocol.ByChainKey:
		a.c.add("record", Said, compared, section, "the node says that the %s of the identity delegated to key %s", a.c.Level, a.keyid)
		return true
	case a.own != nil && len(a.view.Record) == 0 && a.c.doc.Authority.Kind == OfNode:
		a.c.add("record", Said, compared, section, "the node does not have the record of that block any more")
		return true
	}
	_, byContract, err := a.view.Key(a.id, a.keyid)
	if err == nil && byContract {
		a.c.add("record", Open, compared, section, "the record's signature is not that of an ordinary account; whether the contract at %s accepts it, "+
			"only the chain tells (ERC-1271)", a.view.Signer())
		return true
	}
	return a.c.judge("record", err, compared, section, "key %s, record signed by %s", a.keyid, a.view.Signer())
}

// ownKey reads the key for which the node vouches.
func (a *authority) ownKey() bool {
	const compared, section = "the thumbprint of authority.key with the author's key", "RFC 7638, PROOF.md §5.3"
	if len(a.c.doc.Authority.Key) == 0 {
		a.c.add("authority", Said, compared, section, "the node checked the signature; it does not have the key any more")
		return false
	}
	if !a.ownKeyIfGiven() {
		return false
	}
	a.c.add("authority", Said, compared, section, "the node says that key %s is of %s", a.keyid, subjectOf(a.by))
	return true
}

func (a *authority) ownKeyIfGiven() bool {
	raw := a.c.doc.Authority.Key
	if len(raw) == 0 {
		return true
	}
	k, err := key.ParsePublic(raw)
	if err == nil && k.Thumbprint != a.keyid {
		err = fmt.Errorf("it is another key than the author's")
	}
	if err != nil {
		return a.c.judge("authority", err, "authority.key with the author's key", "RFC 7638, PROOF.md §5.3", "")
	}
	a.own = k.Key
	return true
}

// Authority implements integrity.Authority by the view.
func (a *authority) Authority(_ context.Context, _, keyid string) (integrity.Grant, error) {
	if account, ok := httpsig.ParseAccount(keyid); ok {
		return integrity.Grant{Account: ordinary(account)}, nil
	}
	if a.own != nil {
		return integrity.Grant{Key: a.own}, nil
	}
	k, _, err := a.view.Key(a.id, keyid)
	if err != nil {
		return integrity.Grant{}, protocol.Errorf(protocol.KeyUnknown, "%s", err)
	}
	return integrity.Grant{Key: k.Public}, nil
}

// request checks what the author signed against what is shown.
func (a *authority) request(ctx context.Context, claim integrity.Claim) {
	compared, section := "the signed request with what is shown", "RFC 9421 §3.2, RFC 9530 §2, PROOF.md §4.1"
	if claim.Statement != nil {
		compared, section = "the signed statement with what is shown", "FEP-8b32, PROOF.md §4.2"
	}
	if byChain(a.c.Level) {
		claim.ERC8004 = text(a.by.ERC8004)
	} else {
		claim.Own = func(keyid string) crypto.PublicKey {
			if keyid == a.keyid {
				return a.own
			}
			return nil
		}
	}
	v, err := integrity.Judge(ctx, claim, a)
	switch {
	case errors.Is(err, integrity.ErrTampered):
		a.c.add("request", Bad, compared, section, "%s", err)
	case err != nil:
		a.c.add("request", Open, compared, section, "%s", err)
	case !v.Verified:
		a.c.add("request", Open, compared, section, "%s", v.Reason)
	case v.KeyID != a.keyid:
		a.c.add("request", Bad, compared, section, "signed by %s, and the author's key is %s", v.KeyID, a.keyid)
	default:
		a.c.add("request", Good, compared, section, "signed by %s", v.KeyID)
	}
}

var errContract = errors.New("the signature is not that of an ordinary account; if the account is a contract, only the chain tells whether it " +
	"accepts it (ERC-1271)")

// ordinary is an ordinary Ethereum account as a key.
func ordinary(a httpsig.Account) httpsig.Key {
	return httpsig.AccountKey{Account: a, Check: func(base, sig []byte) error {
		if erc8004.SignedByAccount(eip4361.Digest(string(base)), sig, a.Address) {
			return nil
		}
		return errContract
	}}
}
