package credential

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/identity"
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

// In exchanges a signed text for a token.
func (s SignIns) In(ctx context.Context, c protocol.Caller, in protocol.SignedText) (out protocol.AgentToken, err error) {
	g, k, level, spend, err := s.SignIn.Take(ctx, c.Network, strings.TrimSuffix(in.Message, "\n"), in.Signature, time.Now())
	if err != nil {
		return out, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Requests().Spend(ctx, spend) })
	return protocol.AgentToken{Token: s.SignIn.Challenges.Seal(g), ExpiresAt: time.Unix(g.Until, 0).UTC(), Identity: g.Identity,
		Account: k.Key.Thumbprint(), Level: level}, err
}
