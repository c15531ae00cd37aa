package node

import (
	"context"
	"net"
	"net/http"

	"stoa/federation"
	"stoa/node/out/mail"
	"stoa/node/room/operate"
	"stoa/node/work/liveness"
	"stoa/protocol"
)

// What tests of the whole node, which are in package node_test, reach of its wiring. Tests of other packages do without.

var (
	FeedDocuments = feedDocuments
	ListenLMTP    = listenLMTP
	SiteFiles     = siteFiles
	Subjects      = names(subjects)
)

func names(all []subject) (names []string) {
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

func (c Config) SQLite() string             { return c.sqlite() }
func (c Config) MasterKeyFile() string      { return c.masterKey() }
func (c Config) TakesHost(host string) bool { return c.operatorHost(host) }

func (n *Node) Network(r *http.Request) string          { return n.front.network(r) }
func (n *Node) HandBack(r *http.Request)                { n.front.handBack(r) }
func (n *Node) OperatorAddr() net.Addr                  { return n.operatorListener.Addr() }
func (n *Node) Sender() *mail.Sender                    { return n.Accounts.Mail.(letters).Sender }
func (n *Node) ServeLMTP(ctx context.Context) error     { return n.receiver().Serve(ctx, n.lmtp) }
func (n *Node) Federated(event, host string, err error) { n.federated(event, host, err) }
func (n *Node) Federation() *federation.Federation      { return n.federation }
func (n *Node) Prober() *liveness.Prober                { return n.prober }
func (n *Node) Sightings() *liveness.Sightings          { return n.sightings }
func (n *Node) Usage() *operate.Usage                   { return n.usage }

// Reach asks a peer how it sees this node.
func (n *Node) Reach(ctx context.Context, peer string) (protocol.Sight, error) {
	return n.federation.AskReach(ctx, peer)
}
