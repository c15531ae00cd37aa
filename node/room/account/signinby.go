package account

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/eip4361"
	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/protocol"
	"stoa/storage"
)

// A Chain reads the chains of identities. Accounts are addresses in lower case; network is the keyed
// hash of the client's network.
type Chain interface {
	// Owns reports whether an account owns an identity now.
	Owns(ctx context.Context, network, identity, account string) (bool, error)
	// Signed reports whether an account made a signature over a digest, on the chain of an identity.
	Signed(ctx context.Context, network, identity, account string, digest [32]byte, sig []byte) (bool, error)
	// SignedOn is Signed on a chain that the node reads.
	SignedOn(ctx context.Context, network string, chain uint64, account string, digest [32]byte, sig []byte) (bool, error)
}

// begin begins a session of an account for a browser. The session that the browser had so far with
// the account ends.
func (a *Accounts) begin(ctx context.Context, tx *storage.Tx, account string, b session.Browser) (cookie string, err error) {
	acc, err := tx.Accounts().ByID(ctx, account)
	if err != nil {
		return "", missing(err, "the account is gone")
	}
	if acc.Language == "" && b.Language != "" {
		if err := tx.Accounts().SetLanguage(ctx, account, b.Language); err != nil {
			return "", err
		}
	}
	if err := a.Return(ctx, tx, account); err != nil {
		return "", err
	}
	if hash, ok := session.Hash(session.Cookie, b.Former); ok {
		former, err := tx.Sessions().ByHash(ctx, hash)
		if err == nil && former.Account == account {
			err = tx.Sessions().End(ctx, account, former.ID)
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return "", err
		}
	}
	secret, hash := session.New(session.Cookie)
	s := storage.Session{
		ID: protocol.NewID(protocol.SessionID, tx.Now), Hash: hash, Account: account,
		Program: plain(b.Program, 160), ExpiresAt: tx.Now.Add(session.Lifetime),
	}
	if err := tx.Sessions().Insert(ctx, s); err != nil {
		return "", err
	}
	if err := tx.Sessions().KeepNewest(ctx, account, protocol.MaxSessions); err != nil {
		return "", err
	}
	return secret, tx.Audit(ctx, account, "session begin", s.ID, "")
}

// SignInByCode spends a recovery code and begins a session.
func (a *Accounts) SignInByCode(ctx context.Context, tx *storage.Tx, b session.Browser, code string) (cookie string, err error) {
	refused := protocol.Errorf(protocol.Gone, "this recovery code was used before, was renewed, or is mistyped; each has 20 letters and digits and is used once")
	hash, ok := session.HashCode(code)
	if !ok {
		return "", refused
	}
	account, err := tx.RecoveryCodes().Spend(ctx, hash)
	if err != nil {
		return "", storage.IfMissing(err, refused)
	}
	if cookie, err = a.begin(ctx, tx, account, b); err != nil {
		return "", err
	}
	return cookie, a.changed(ctx, tx, account, account, CodeUsed, account, "")
}

// errPasskey does not say whether the passkey is unknown, was removed or did not verify.
var errPasskey = protocol.Errorf(protocol.Forbidden,
	"this passkey does not sign in here: it was removed, or is for another node; use another way, such as a mail link")

// SignInChallenge returns what a passkey signs to sign in. Nothing is stored.
func (a *Accounts) SignInChallenge(b session.Browser) string {
	return a.Challenges.New(session.ByPasskey, b.Bound, time.Now())
}

// SignInByPasskey verifies a signature by a passkey and begins a session. A passkey whose counter
// went back becomes suspect, signs nobody in from then on, and its owner is told.
func (a *Accounts) SignInByPasskey(ctx context.Context, b session.Browser, in passkey.Assertion) (cookie string, err error) {
	challenge := passkey.Challenge(in.ClientData)
	id, err := base64.RawURLEncoding.DecodeString(in.ID)
	if a.Site == nil || err != nil {
		return "", errPasskey
	}
	key, until, ok := a.Challenges.Check(challenge, session.ByPasskey, b.Bound, time.Now())
	if !ok {
		return "", errChallenge
	}
	var stored storage.Passkey
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		stored, err = tx.Passkeys().ByCredential(ctx, id)
		return err
	})
	if err != nil || stored.Domain != a.Site.Domain {
		return "", storage.Missing(err, errPasskey)
	}
	c, err := a.Site.Verify(stored.Account, challenge, passkey.Credential{
		ID: stored.Credential, Key: stored.PublicKey, Count: stored.Count, BackupEligible: stored.BackupEligible, BackedUp: stored.BackedUp,
	}, in)
	if err != nil {
		e := *errPasskey
		e.Err = err
		return "", &e
	}
	now := stored
	now.Count, now.BackedUp, now.Suspect = c.Count, c.BackedUp, stored.Suspect || c.Cloned
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Requests().Spend(ctx, protocol.Spend{Key: key, Until: until, Code: protocol.Gone}); err != nil {
			return err
		}
		if err := tx.Passkeys().Use(ctx, stored, now); errors.Is(err, storage.ErrNotFound) {
			return protocol.Errorf(protocol.Conflict, "this passkey was used or removed at the same moment; try again")
		} else if err != nil {
			return err
		}
		if now.Suspect {
			if stored.Suspect {
				return nil
			}
			return a.changed(ctx, tx, stored.Account, stored.Account, PasskeyCopied, stored.ID, stored.Name)
		}
		cookie, err = a.begin(ctx, tx, stored.Account, b)
		return err
	})
	if err == nil && now.Suspect {
		return "", protocol.Errorf(protocol.Forbidden,
			"the counter of this passkey went back, as it does where a copy is used, so it signs nobody in any more; sign in by another way and remove it")
	}
	return cookie, err
}

// EthereumMessage returns the text that an Ethereum account signs to sign in. Nothing is stored, and
// nothing is said about the account.
func (a *Accounts) EthereumMessage(b session.Browser, account string, chain uint64) (string, error) {
	sum, ok := eip4361.Address(account)
	if !ok {
		return "", protocol.Errorf(protocol.InvalidRequest, "that is not the address of an Ethereum account")
	}
	if !slices.Contains(a.Chains, chain) {
		return "", identity.WrongChain(a.Chains)
	}
	now := time.Now().UTC().Truncate(time.Second)
	scheme, host, _ := strings.Cut(a.Base, "://")
	if scheme == "https" {
		scheme = ""
	}
	return eip4361.Message{
		Scheme: scheme, Domain: host, Account: sum, Statement: "Sign in to this node. It costs nothing and sends no transaction.", URI: a.Base + "/sign-in",
		ChainID: chain, Nonce: a.Challenges.New(session.ByEthereum, b.Bound, now),
		IssuedAt: now.Format(time.RFC3339), ExpirationTime: now.Add(session.ChallengeLifetime).Format(time.RFC3339),
	}.String(), nil
}

// judge checks what a message says, except its signature, and returns what its nonce is remembered by.
func (a *Accounts) judge(text string, b session.Browser) (m eip4361.Message, spend protocol.Spend, err error) {
	if m, err = eip4361.Parse(text); err != nil {
		return m, spend, protocol.Errorf(protocol.InvalidRequest, "the text that was signed is %w", err)
	}
	key, until, ok := a.Challenges.Check(m.Nonce, session.ByEthereum, b.Bound, time.Now())
	switch err = identity.CheckText(m, a.Base, a.Chains, time.Now()); {
	case err != nil:
	case m.URI != a.Base+"/sign-in":
		err = protocol.Errorf(protocol.InvalidRequest, "the text was signed for the address %s, and not for %s/sign-in; sign the text of this page", m.URI, a.Base)
	case !ok:
		err = errChallenge
	}
	return m, protocol.Spend{Key: key, Until: until, Code: protocol.Gone}, err
}

// signedText checks a signature over a text of EthereumMessage as far as no chain has to be asked.
func (a *Accounts) signedText(b session.Browser, text, signature string) (m eip4361.Message, raw []byte, spend protocol.Spend, err error) {
	if a.Chain == nil {
		return m, nil, spend, protocol.Errorf(protocol.Conflict, "this node reads no chain, so that nobody can sign in with an Ethereum account")
	}
	if m, spend, err = a.judge(text, b); err != nil {
		return m, nil, spend, err
	}
	if raw, err = hex.DecodeString(strings.TrimPrefix(signature, "0x")); err != nil {
		err = protocol.Errorf(protocol.InvalidRequest, "the signature is not in hexadecimal digits")
	}
	return m, raw, spend, err
}

// SignInByEthereum begins a session of the account that the signing Ethereum account made by joining; or of the one whose profile
// is enrolled to an identity that the Ethereum account owns now. handle names a profile of that account, "" where there is only
// one account.
func (a *Accounts) SignInByEthereum(ctx context.Context, b session.Browser, text, signature, handle string) (cookie string, err error) {
	m, raw, spend, err := a.signedText(b, text, signature)
	if err != nil {
		return "", err
	}
	wallet := strings.ToLower(m.Account)
	var own storage.Account
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		own, err = tx.Accounts().ByWallet(ctx, wallet)
		return storage.IfMissing(err, nil)
	})
	if err != nil {
		return "", err
	}
	p := storage.OwnedProfile{Account: own.ID}
	if own.ID == "" || handle != "" {
		p, err = a.ownedBy(ctx, m, b.Network, protocol.CleanHandle(handle), raw, eip4361.Digest(text))
	} else if good, failed := a.Chain.SignedOn(ctx, b.Network, m.ChainID, wallet, eip4361.Digest(text), raw); failed != nil || !good {
		err = cmp.Or(failed, error(errNoOwner))
	}
	if err != nil {
		return "", err
	}
	err = a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Requests().Spend(ctx, spend); err != nil {
			return err
		}
		if p.Handle == "" {
			if acc, err := tx.Accounts().ByWallet(ctx, wallet); err != nil || acc.ID != p.Account { // it was removed meanwhile
				return cmp.Or(storage.IfMissing(err, errNoOwner), error(errNoOwner))
			}
			cookie, err = a.begin(ctx, tx, p.Account, b)
			return err
		}
		again, err := tx.Enrolments().OfOwner(ctx, wallet, protocol.MaxProfiles)
		if err != nil {
			return err
		}
		if !slices.Contains(again, p) { // the enrolment ended, or the profile went to another account
			return errNoOwner
		}
		cookie, err = a.begin(ctx, tx, p.Account, b)
		return err
	})
	return cookie, err
}

// errNoOwner does not say whether the account is unknown, has sold its identity or did not sign.
var errNoOwner = protocol.Errorf(protocol.Forbidden,
	"this Ethereum account signs nobody in: it owns no identity of a profile here now, or the signature is not its own; use another way, such as a mail link")

// ownedBy returns a profile that is enrolled to an identity of the message's account and chain, when
// the chain says that the account owns it now and made the signature. Accounts that own nothing here
// cause no reads of the chain.
func (a *Accounts) ownedBy(ctx context.Context, m eip4361.Message, network, handle string, sig []byte, digest [32]byte) (storage.OwnedProfile, error) {
	owner := strings.ToLower(m.Account)
	var owned []storage.OwnedProfile
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		owned, err = tx.Enrolments().OfOwner(ctx, owner, protocol.MaxProfiles)
		return err
	})
	if err != nil {
		return storage.OwnedProfile{}, err
	}
	chain, signed := fmt.Sprintf("eip155:%d:", m.ChainID), false
	for _, p := range owned {
		if !strings.HasPrefix(p.ERC8004, chain) || handle != "" && p.Handle != handle {
			continue
		}
		if !signed {
			if signed, err = a.Chain.Signed(ctx, network, p.ERC8004, owner, digest, sig); err != nil || !signed {
				return p, cmp.Or(err, error(errNoOwner))
			}
		}
		if owns, err := a.Chain.Owns(ctx, network, p.ERC8004, owner); err != nil || !owns {
			if err != nil {
				return p, err
			}
			continue
		}
		if handle == "" && slices.ContainsFunc(owned, func(o storage.OwnedProfile) bool { return o.Account != p.Account }) {
			return p, protocol.Errorf(protocol.Conflict, "this Ethereum account owns identities of several accounts here; give the handle of the profile too")
		}
		return p, nil
	}
	return storage.OwnedProfile{}, errNoOwner
}
