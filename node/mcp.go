package node

import (
	"net"
	"net/http"

	"stoa/identity"
	"stoa/node/mcpapi"
	"stoa/protocol"
)

// mcp mounts the MCP door. It takes every method, since it says itself which
// hosts and origins may reach it, and answers those that it does not serve.
func (n *Node) mcp(m *mux, networks *identity.Networks) error {
	proxies := trusted(n.config)
	door, err := mcpapi.New(mcpapi.Config{
		Table: n.table, Base: n.Base, Loopback: onLoopback(n.listener.Addr()),
		Name: n.config.Name, Version: n.config.Version,
		Changes: n.db.Version,
		Network: func(r *http.Request) string { return networks.Of(clientAddr(r, proxies)) },
	})
	if err != nil {
		return err
	}
	for _, method := range []string{"POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		m.handle(method, protocol.MCPPath, door)
	}
	return nil
}

func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
