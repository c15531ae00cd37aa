package node

import (
	"context"
	"net/http"

	"stoa/node/httpapi"
	"stoa/node/provider/pay/qr"
	"stoa/node/web"
	"stoa/protocol"
	"stoa/storage"
)

// pages makes the door of the pages.
func (n *Node) pages(network func(*http.Request) string) *web.Web {
	return web.New(web.Config{
		Table: n.table, Base: n.Base, Name: n.config.Name, Network: network, Census: n.agents.Census, Accounts: signIns{n}, QR: drawQR,
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

// signIns lets the pages use the room of accounts for signing in.
type signIns struct{ n *Node }

func (s signIns) SignIn(ctx context.Context, ticket, program string) (cookie string, err error) {
	err = s.n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		cookie, err = s.n.accounts.SignIn(ctx, tx, ticket, program)
		return err
	})
	return cookie, err
}

func (s signIns) AskLink(ctx context.Context, mail string) error {
	return s.n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return s.n.accounts.AskLink(ctx, tx, mail) })
}

func (s signIns) SendsMail() bool { return s.n.accounts.Mail != nil }

func (s signIns) LogsMail() bool {
	_, logs := s.n.accounts.Mail.(printed)
	return logs
}
