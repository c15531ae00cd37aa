package node

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"stoa/identity"
	"stoa/identity/erc8004"
	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/node/door/httpapi"
	"stoa/node/door/web"
	"stoa/node/out/pay/qr"
	"stoa/node/room/account"
	"stoa/node/room/credential"
	"stoa/protocol"
	"stoa/storage"
)

// pages makes the door of the pages.
func (n *Node) pages(network func(*http.Request) string) *web.Web {
	var registries []web.Registry
	for _, s := range n.Config.Chain {
		chain, err := erc8004.ParseChain(s)
		if err != nil { // the configuration was checked at the start
			continue
		}
		for _, r := range chain.Registries {
			registries = append(registries, web.Registry{ChainID: chain.ID, Address: r.Identity.Hex()})
		}
	}
	return web.New(web.Config{
		Table: n.Table, Base: n.Base, Name: n.Config.Name, Network: network, Census: n.agents.Census, Accounts: signIns{n}, QR: drawQR,
		Version: n.DB.Version, Live: n.Feed.Pulse,
		InUse: func(ctx context.Context) (used web.InUse, err error) {
			err = n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				all, err := n.Directory.InUse(ctx, tx)
				used = web.InUse(all)
				return err
			})
			return used, err
		},
		Held: func(ctx context.Context, agent string) (h protocol.Holder, err error) {
			err = n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				h, err = credential.Holder(ctx, tx, agent)
				return err
			})
			return h, err
		},
		Registering: func(ctx context.Context, network, agent, keyid string) (web.Registering, error) {
			chain, err := n.readChain()
			if err != nil {
				return web.Registering{}, err
			}
			p, err := chain.Progress(ctx, network, agent, keyid)
			return web.Registering(p), err
		},
		PushKey: n.Accounts.Push.Key.Public(), Registries: registries, Texts: n.texts, GrievanceOfficer: n.Config.GrievanceOfficer, Contact: n.Config.Contact,
		Problem: func(w http.ResponseWriter, err error) { httpapi.WriteProblem(w, n.Base, protocol.DialectNone, err) },
	})
}

func drawQR(text, label string) ([]byte, error) {
	code, err := qr.Encode(text)
	if err != nil {
		return nil, err
	}
	return code.SVG(label), nil
}

// signInWays are what passkeys and Ethereum accounts need.
func (n *Node) signInWays(secret []byte) (ways account.SignInWays, err error) {
	ways.Challenges.Key = secret
	if ways.Site, err = passkey.New(n.Base, n.name()); err != nil && !errors.Is(err, passkey.ErrNoDomain) {
		return ways, err
	}
	ways.Agents = &identity.SignIn{Base: n.Base, Challenges: ways.Challenges}
	if n.Chain != nil {
		ways.Chain, ways.Chains = n.Chain, slices.Sorted(maps.Keys(n.Chain.Reader.Registries()))
		ways.Agents.Chain, ways.Agents.Chains = n.Chain, ways.Chains
	}
	return ways, nil
}

// signIns lets the pages use the room of accounts for signing in.
type signIns struct{ n *Node }

func (s signIns) ByTicket(ctx context.Context, b session.Browser, ticket string) (cookie string, err error) {
	err = s.n.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, err = s.n.Accounts.SignIn(ctx, tx, b, ticket)
		return err
	})
	return cookie, err
}

func (s signIns) ByCode(ctx context.Context, b session.Browser, code string) (cookie string, err error) {
	err = s.n.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, err = s.n.Accounts.SignInByCode(ctx, tx, b, code)
		return err
	})
	return cookie, err
}

func (s signIns) ByPasskey(ctx context.Context, b session.Browser, a passkey.Assertion) (cookie string, err error) {
	return s.n.Accounts.SignInByPasskey(ctx, b, a)
}

func (s signIns) ByEthereum(ctx context.Context, b session.Browser, text, signature, handle string) (cookie string, err error) {
	return s.n.Accounts.SignInByEthereum(ctx, b, text, signature, handle)
}

func (s signIns) JoinByEthereum(ctx context.Context, b session.Browser, in protocol.NewMember, text, signature string) (cookie string, err error) {
	return s.n.Accounts.JoinByEthereum(ctx, b, in, text, signature)
}

func (s signIns) Challenge(b session.Browser) string {
	return s.n.Accounts.SignInChallenge(b)
}

func (s signIns) EthereumMessage(b session.Browser, account string, chain uint64) (string, error) {
	return s.n.Accounts.EthereumMessage(b, account, chain)
}

func (s signIns) PasskeyDomain() string {
	if s.n.Accounts.Site == nil {
		return ""
	}
	return s.n.Accounts.Site.Domain
}

func (s signIns) Chains() []uint64 { return s.n.Accounts.Chains }

func (s signIns) AskLink(ctx context.Context, mail, language string) error {
	return s.n.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return s.n.Accounts.AskLink(ctx, tx, mail, language) })
}

func (s signIns) Registrations() protocol.Registrations { return s.n.Accounts.Joining.Policy }

func (s signIns) Invites() int {
	if s.n.Accounts.Joining.Policy == protocol.RegistrationsClosed {
		return 0
	}
	return s.n.Accounts.Joining.Invites
}

func (s signIns) AskJoin(ctx context.Context, network string, in protocol.NewMember, mail, language string) (secret string, err error) {
	err = s.n.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		secret, err = s.n.Accounts.AskJoin(ctx, tx, protocol.Caller{Network: network}, in, mail, language)
		return err
	})
	return secret, err
}

func (s signIns) ConfirmJoin(ctx context.Context, b session.Browser, secret, code, handle string) (cookie, made string, err error) {
	return s.n.Accounts.ConfirmJoin(ctx, b, secret, code, handle)
}

func (s signIns) JoinByPasskey(ctx context.Context, b session.Browser, in protocol.NewMember) (cookie string, err error) {
	return s.n.Accounts.JoinByPasskey(ctx, b, in)
}

func (s signIns) OperatorOptions(ctx context.Context, ticket, name string) (out protocol.PasskeyOptions, err error) {
	err = s.n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		out, err = s.n.Accounts.OperatorOptions(ctx, tx, ticket, name)
		return err
	})
	return out, err
}

func (s signIns) BecomeOperator(ctx context.Context, b session.Browser, ticket, account string, in protocol.NewPasskey) (cookie string, err error) {
	err = s.n.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, err = s.n.Accounts.BecomeOperator(ctx, tx, b, ticket, account, in)
		return err
	})
	return cookie, err
}

func (s signIns) FreeHandle(ctx context.Context, handle string) error {
	return s.n.Accounts.FreeHandle(ctx, handle)
}

func (s signIns) SendsMail() bool { return s.n.Accounts.Mail != nil }

func (s signIns) LogsMail() bool {
	_, logs := s.n.Accounts.Mail.(printed)
	return logs
}
