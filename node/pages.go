package node

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"stoa/identity/erc8004"
	"stoa/identity/passkey"
	"stoa/identity/session"
	"stoa/node/door/httpapi"
	"stoa/node/door/web"
	"stoa/node/out/pay/qr"
	"stoa/node/room/account"
	"stoa/protocol"
	"stoa/storage"
)

// pages makes the door of the pages.
func (n *Node) pages(network func(*http.Request) string) *web.Web {
	var registries []web.Registry
	for _, s := range n.config.Chain {
		chain, err := erc8004.ParseChain(s)
		if err != nil { // the configuration was checked at the start
			continue
		}
		for _, r := range chain.Registries {
			registries = append(registries, web.Registry{ChainID: chain.ID, Address: r.Identity.Hex()})
		}
	}
	return web.New(web.Config{
		Table: n.table, Base: n.Base, Name: n.config.Name, Network: network, Census: n.agents.Census, Accounts: signIns{n}, QR: drawQR,
		Version: n.db.Version, Live: n.feed.Pulse,
		InUse: func(ctx context.Context) (used web.InUse, err error) {
			err = n.db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				all, err := n.directory.InUse(ctx, tx)
				used = web.InUse(all)
				return err
			})
			return used, err
		},
		Registries: registries,
		Problem:    func(w http.ResponseWriter, err error) { httpapi.WriteProblem(w, n.Base, protocol.DialectNone, err) },
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
	if n.chain != nil {
		ways.Chain, ways.Chains = n.chain, slices.Sorted(maps.Keys(n.chain.Reader.Registries()))
	}
	return ways, nil
}

// signIns lets the pages use the room of accounts for signing in.
type signIns struct{ n *Node }

func (s signIns) ByTicket(ctx context.Context, b session.Browser, ticket string) (cookie string, err error) {
	err = s.n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, err = s.n.accounts.SignIn(ctx, tx, b, ticket)
		return err
	})
	return cookie, err
}

func (s signIns) ByCode(ctx context.Context, b session.Browser, code string) (cookie string, err error) {
	err = s.n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, err = s.n.accounts.SignInByCode(ctx, tx, b, code)
		return err
	})
	return cookie, err
}

func (s signIns) ByPasskey(ctx context.Context, b session.Browser, a passkey.Assertion) (cookie string, err error) {
	return s.n.accounts.SignInByPasskey(ctx, b, a)
}

func (s signIns) ByEthereum(ctx context.Context, b session.Browser, text, signature, handle string) (cookie string, err error) {
	return s.n.accounts.SignInByEthereum(ctx, b, text, signature, handle)
}

func (s signIns) Challenge(b session.Browser) string {
	return s.n.accounts.SignInChallenge(b)
}

func (s signIns) EthereumMessage(b session.Browser, account string, chain uint64) (string, error) {
	return s.n.accounts.EthereumMessage(b, account, chain)
}

func (s signIns) PasskeyDomain() string {
	if s.n.accounts.Site == nil {
		return ""
	}
	return s.n.accounts.Site.Domain
}

func (s signIns) Chains() []uint64 { return s.n.accounts.Chains }

func (s signIns) AskLink(ctx context.Context, mail string) error {
	return s.n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return s.n.accounts.AskLink(ctx, tx, mail) })
}

func (s signIns) SendsMail() bool { return s.n.accounts.Mail != nil }

func (s signIns) LogsMail() bool {
	_, logs := s.n.accounts.Mail.(printed)
	return logs
}
