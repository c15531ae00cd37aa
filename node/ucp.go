package node

import (
	"context"
	"errors"
	"net/http"

	"stoa/node/door/mcpapi"
	"stoa/node/door/ucpapi"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/storage"
)

// commerce mounts the UCP door: its REST binding and its MCP binding.
func (n *Node) commerce(m *mux, client *http.Client) (err error) {
	n.ucp, err = ucpapi.New(ucpapi.Config{
		Table: n.Table, Base: n.Base, Network: n.front.network, Client: client,
		Refused: func(err error) bool {
			_, refused := errors.AsType[*outbound.Refused](err)
			return refused
		},
		Blocked: func(ctx context.Context, host string) (blocked bool, err error) {
			err = n.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				blocked, err = tx.Peers().Refused(ctx, host)
				return err
			})
			return blocked, err
		},
		Loopback: n.Config.private(), Strict: n.Config.UCPStrict,
	})
	if err != nil {
		return err
	}
	m.spoken["api/ucp"] = n.ucp.Refuse
	for _, r := range n.ucp.Routes() {
		m.handle(r.Method, r.Path, r.Handler)
	}
	door, err := mcpapi.New(mcpapi.Config{
		Table: n.Table, For: protocol.Everybody, Base: n.Base, Loopback: onLoopback(n.listener.Addr()), Name: n.Config.Name, Version: n.Config.Version,
		Changes: n.DB.Version, Network: n.front.network, Tools: n.ucp.Tools(), Instructions: ucpapi.Instructions,
	})
	if err != nil {
		return err
	}
	for _, method := range []string{"POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		m.handle(method, protocol.UCPMCPPath, door)
	}
	return nil
}
