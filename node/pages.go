package node

import (
	"net/http"

	"stoa/node/httpapi"
	"stoa/node/web"
)

// pages makes the pages' door.
func (n *Node) pages(network func(*http.Request) string) *web.Web {
	return web.New(web.Config{
		Table: n.table, Base: n.Base, Name: n.config.Name, Network: network, Census: n.agents.census,
		Problem: func(w http.ResponseWriter, err error) { httpapi.WriteProblem(w, n.Base, err) },
	})
}
