package main

import (
	"errors"
	"fmt"
	"strings"

	"stoa/protocol"
)

// maxCard bounds the server card of a node.
const maxCard = 64 << 10

type registryCmd struct {
	Publish string `name:"as" placeholder:"VERSION" help:"Version to publish as. Default: the node's. Each is published once."`
	Node    string `arg:"" help:"Public address of the node, such as https://node.example."`
}

func (c *registryCmd) Help() string {
	return `The registry takes it from whoever proves by a key that the host is theirs:

  openssl genpkey -algorithm Ed25519 -out registry.pem
  openssl pkey -in registry.pem -pubout -outform DER | tail -c 32 | base64

Set mcp-registry-key to what the second command prints, and restart the node. Then

  stoa registry-json https://node.example > server.json
  mcp-publisher login http --domain node.example --private-key "$(openssl pkey -in registry.pem -outform DER | tail -c 32 | xxd -p -c 32)"
  mcp-publisher publish`
}

func (c *registryCmd) Run(w *world) error {
	base := strings.TrimRight(c.Node, "/")
	raw, err := fetchFrom(w.ctx, base, protocol.ServerCardPath, maxCard)
	if err != nil {
		return err
	}
	server, err := protocol.RegistryServer(raw, c.Publish)
	if err != nil {
		return err
	}
	if _, err := fetchFrom(w.ctx, base, protocol.RegistryAuthPath, maxCard); err != nil {
		if _, ok := errors.AsType[notServed](err); !ok {
			return err
		}
		fmt.Fprintf(w.stderr, "%s%s is not served: without it the registry refuses a sign-in by HTTP. Set mcp-registry-key; --help has the steps.\n",
			base, protocol.RegistryAuthPath)
	}
	_, err = fmt.Fprintf(w.stdout, "%s\n", server)
	return err
}
