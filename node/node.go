// Package node builds every part of a node from one Config, binds the rooms to the
// declared operations, and runs servers and background work until its context ends.
// The packages below it read no globals, and start no goroutine that they do not wait
// for.
package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"stoa/federation"
	"stoa/identity"
	keydirectory "stoa/identity/directory"
	"stoa/identity/key"
	"stoa/node/door/httpapi"
	"stoa/node/door/mcpapi"
	"stoa/node/door/ucpapi"
	"stoa/node/door/web"
	"stoa/node/hall"
	"stoa/node/money"
	"stoa/node/out/otlp"
	"stoa/node/out/signed"
	"stoa/node/room/account"
	"stoa/node/room/archive"
	"stoa/node/room/attention"
	"stoa/node/room/board"
	"stoa/node/room/contact"
	"stoa/node/room/credential"
	"stoa/node/room/directory"
	"stoa/node/room/feed"
	"stoa/node/room/meeting"
	"stoa/node/room/moderation"
	"stoa/node/room/operate"
	"stoa/node/room/order"
	"stoa/node/room/reputation"
	"stoa/node/work/backup"
	"stoa/node/work/doctor"
	"stoa/node/work/liveness"
	"stoa/node/work/worker"
	"stoa/protocol/trace"
	"stoa/storage"
)

// A Node is one running node. Make it with New, run it with Run, once.
type Node struct {
	Base   string // public address, without a slash at the end
	URL    string // where it listens, http://host:port
	Config Config // what it was made of

	// The parts that New made. A program that runs a node in its own process, as tests do, may call them, and before Run
	// replace what they dial with: mail, a payment provider, a chain.
	DB         *storage.DB
	Keys       *credential.Keyring
	Chain      *credential.Chain
	Enrolments *credential.Enrolments // nil when no chain is configured
	Table      *hall.Table
	Worker     *worker.Worker
	Meter      *operate.Meter
	Accounts   *account.Accounts
	Archive    *archive.Archive
	Money      *money.Money
	Attention  *attention.Attention
	Orders     *order.Orders
	Board      *board.Board
	Contact    *contact.Contact
	Directory  *directory.Directory
	Feed       *feed.Feed
	Meeting    *meeting.Meeting
	Moderation *moderation.Moderation
	Reputation *reputation.Reputation
	Web        *web.Web

	texts web.Texts // of the operator

	log          *slog.Logger
	agents       *credential.Agents
	directories  *keydirectory.Cache
	signer       *signed.Signer // of what the node asks of others
	prover       *credential.Prover
	followers    *mcpapi.Hub                                                                  // of resources of MCP
	agentStreams *hall.Streams                                                                // of A2A
	cards        func(ctx context.Context, handle, network string) ([]byte, time.Time, error) // as the A2A door shows them
	front        *front
	federation   *federation.Federation
	metrics      *metrics
	tracer       *trace.Tracer  // nil when no traces are recorded
	exporter     *otlp.Exporter // of its traces
	prober       *liveness.Prober
	sightings    *liveness.Sightings
	usage        *operate.Usage // nil when the node is a single process
	state        *operate.Health
	doctor       *doctor.Doctor
	backup       *backup.Backup // nil when the node makes none
	api          *httpapi.API
	ucp          *ucpapi.API

	sockets                    sockets // that no setting has taken yet
	listener, operatorListener net.Listener
	plain                      net.Listener // without TLS, in addition to HTTPS; nil for none
	certifier                  certifier    // nil when the node serves without TLS
	lmtp                       net.Listener // nil when no answers to mail are taken
	handler                    http.Handler
	draining                   atomic.Bool
	pulse                      pulse
}

// New builds a node: it opens the database (making and migrating it as needed),
// the keys and the listening sockets. The node serves nothing before Run. The
// caller closes the node when New succeeded and Run is not called.
func New(ctx context.Context, c Config, log *slog.Logger) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := &Node{Config: c, log: log}
	if err := n.open(ctx); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Node) open(ctx context.Context) error {
	c := n.Config
	var err error
	if n.DB, n.Keys, err = openStore(ctx, c, n.log, true); err != nil {
		return err
	}
	if n.sockets, err = inherited(); err != nil {
		return err
	}
	if n.listener, err = n.sockets.listen("listen", c.address()); err != nil {
		return err
	}
	if c.OperatorListen != "" {
		if n.operatorListener, err = n.sockets.listen("operator-listen", c.OperatorListen); err != nil {
			return err
		}
	}
	if c.LMTP != "" {
		if n.lmtp, err = listenLMTP(c.LMTP); err != nil {
			return err
		}
	}
	n.URL = "http://" + n.listener.Addr().String()
	n.Base = c.base(n.listener.Addr().String())
	if err := errors.Join(claimBase(ctx, n.DB, n.Base), n.listenPlain(), n.sockets.rest()); err != nil {
		return err
	}
	return n.build(ctx)
}

// openStore opens the database, to serve it or next to the process that does, and the
// keys that are sealed in it.
func openStore(ctx context.Context, c Config, log *slog.Logger, serve bool) (*storage.DB, *credential.Keyring, error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, nil, fmt.Errorf("%w: data: %w", ErrConfig, err)
	}
	if _, err := key.LoadMaster(c.masterKey()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	where := c.Storage(log)
	where.Serve = serve
	db, err := storage.Open(ctx, where)
	if errors.Is(err, storage.ErrServed) {
		return nil, nil, fmt.Errorf("%w: a node runs on the data directory %s already: stop it, or give this one another with --data; "+
			"several processes of one node need PostgreSQL (--database)", ErrConfig, c.Data)
	}
	if errors.Is(err, storage.ErrMoved) || errors.Is(err, storage.ErrMoving) {
		return nil, nil, moveFault(err)
	}
	if errors.Is(err, storage.ErrNewer) || errors.Is(err, storage.ErrOlder) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	sealer, err := credential.MasterKey(ctx, db, c.masterKey())
	if errors.Is(err, credential.ErrNoMaster) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	keys, err := credential.OpenKeyring(ctx, db, sealer, c.NewRSA)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, keys, nil
}

// Handler is the public handler of the node, for tests that need no socket.
func (n *Node) Handler() http.Handler { return n.handler }

// OperatorHandler is the handler of the operator's address, without the check of the host's name.
func (n *Node) OperatorHandler() http.Handler {
	return n.metrics.operatorHandler(http.HandlerFunc(n.health), http.HandlerFunc(n.ready))
}

// Operate runs one operation as the operator, in this process.
func (n *Node) Operate(ctx context.Context, op string, args []byte) error {
	_, err := n.Table.Invoke(ctx, hall.Request{Op: op, Args: args, Door: "operator", Evidence: identity.Evidence{Operator: true}})
	return err
}

func trusted(c Config) []netip.Prefix {
	var nets []netip.Prefix
	for _, s := range c.TrustedProxies {
		if p, err := netip.ParsePrefix(s); err == nil {
			nets = append(nets, p)
		}
	}
	return nets
}
