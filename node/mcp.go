package node

import (
	"net"

	"stoa/node/door/mcpapi"
	"stoa/protocol"
)

// mcp mounts the MCP doors, the public one and that of owners. They take every method,
// because they check hosts and origins themselves, and refuse methods that they do not
// serve.
func (n *Node) mcp(m *mux) error {
	n.followers = mcpapi.NewHub(n.DB.Version)
	for path, audience := range map[string]protocol.Audience{protocol.MCPPath: protocol.Everybody, protocol.OwnerMCPPath: protocol.Owners} {
		door, err := mcpapi.New(mcpapi.Config{
			Table: n.Table, For: audience, Base: n.Base, Loopback: onLoopback(n.listener.Addr()),
			Name: n.Config.Name, Version: n.Config.Version,
			Changes: n.DB.Version,
			Network: n.front.network, Hub: n.followers,
		})
		if err != nil {
			return err
		}
		if audience == protocol.Everybody {
			m.spoken["mcp"] = door.Refuse
		}
		for _, method := range []string{"POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			m.handle(method, path, door)
		}
	}
	return nil
}

func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
