package credential

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/identity"
	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// SignIns signs agents in by texts that their Ethereum accounts signed.
type SignIns struct {
	DB     *storage.DB
	SignIn *identity.SignIn
}

// Bind binds the operations.
func (s SignIns) Bind(t *hall.Table) {
	hall.BindPlain(t, protocol.GetSignInText, s.Text)
	hall.BindPlain(t, protocol.SignInAgent, s.In)
	hall.Bind(t, protocol.EndDelegation, s.End)
}

// Text returns what a text to sign has to say. Nothing is stored.
func (s SignIns) Text(context.Context, protocol.Caller, protocol.None) (protocol.SignInText, error) {
	m := s.SignIn.Text(time.Now())
	issued, expires, _ := m.Times()
	out := protocol.SignInText{Domain: m.Domain, URI: m.URI, Version: "1", Statement: m.Statement, Nonce: m.Nonce, IssuedAt: issued,
		ExpirationTime: expires, Chains: []string{}}
	for _, c := range s.SignIn.Chains {
		out.Chains = append(out.Chains, fmt.Sprintf("eip155:%d", c))
	}
	return out, nil
}

// In exchanges a signed text for a token, and lets the key that it delegates to sign from now on.
func (s SignIns) In(ctx context.Context, c protocol.Caller, in protocol.SignedText) (out protocol.AgentToken, err error) {
	got, err := s.SignIn.Take(ctx, c.Network, strings.TrimSuffix(in.Message, "\n"), in.Signature, time.Now())
	if err != nil {
		return out, err
	}
	to, until, delegates, err := got.Delegates(in.JWK, time.Now())
	if err != nil {
		return out, err
	}
	out = protocol.AgentToken{Token: s.SignIn.Challenges.Seal(got.Grant), ExpiresAt: time.Unix(got.Until, 0).UTC(), Identity: got.Identity,
		Account: got.Key.Key.Thumbprint(), Level: got.Level}
	if delegates {
		out.KeyID, out.KeyEndsAt = to.Thumbprint, &until
	}
	err = s.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Requests().Spend(ctx, got.Spend); err != nil || !delegates {
			return err
		}
		public, err := key.MarshalPublic(to)
		if err != nil {
			return err
		}
		return tx.DelegatedKeys().Put(ctx, storage.DelegatedKey{Identity: got.Identity, Thumbprint: to.Thumbprint, Account: out.Account,
			PublicJWK: string(public), EndsAt: until}, protocol.MaxDelegatedKeys)
	})
	return out, err
}

// End ends every delegated key of the caller's identity.
func (s SignIns) End(ctx context.Context, tx *storage.Tx, c protocol.Caller, _ protocol.None) (out protocol.Undelegated, err error) {
	if c.Agent == "" {
		return out, protocol.Errorf(protocol.Unauthorized, "only an ERC-8004 identity has delegated keys")
	}
	out.Ended, err = tx.DelegatedKeys().Delete(ctx, c.Agent)
	return out, err
}
