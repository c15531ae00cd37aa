package erc8004

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Config lists the chains and registries that a [Reader] trusts. All others are refused: an
// address that begins with 0x8004 proves nothing.
type Config struct {
	Chains []Chain
	// HTTPClient makes the calls. Redirects are always refused and bodies always bounded. Nil uses
	// a client that ignores proxy variables.
	HTTPClient *http.Client
	Memory     Memory // nil forgets at restart
	// Known reports whether an identity, in canonical form, is known: then its reads use a share
	// that new identities cannot use up. Nil: only cached identities with a record are known. It
	// must not dial out.
	Known func(ctx context.Context, id string) (bool, error)
	Log   *slog.Logger
	// Changed is called after each look of [Reader.Run] at which something changed. It must not
	// block. It may be nil.
	Changed func(Changes)
	// AllowPending grants a change of authority before it is final and sets Grant.Pending. For
	// development only: such a grant can be reverted.
	AllowPending bool
	CacheEntries int     // default 50,000 agents
	ReadsPerSec  float64 // chain reads a second per chain, default 20; a read is at most four requests
	ReadBurst    int     // default 40
}

// A Chain is one EVM chain.
type Chain struct {
	ID         uint64
	RPC        []string // http or https endpoints, preferred first; best from several operators
	Registries []Registry
	Finality   string        // finalized (default), safe, or depth:<n> for chains without these tags
	Poll       time.Duration // pause between looks at the head, default 12 s
	MaxHeadAge time.Duration // an endpoint with an older head is stuck; default 2 min
	LogRange   uint64        // blocks of one eth_getLogs, default 500; halved when the provider refuses
	// Quorum is how many endpoints must give the same answer before a key is granted, default 1: then the first answer is taken.
	Quorum int
}

// A Registry is one deployment of ERC-8004. Reputation may be zero; it is only checked to refer to
// Identity.
type Registry struct {
	Identity   common.Address
	Reputation common.Address
}

// Registries with the same address on every chain of a class (addresses published by the
// standard's authors, August 2026).
var (
	MainnetRegistry = Registry{
		Identity:   common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
		Reputation: common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63"),
	}
	TestnetRegistry = Registry{
		Identity:   common.HexToAddress("0x8004A818BFB912233c491871b3d84c89A494BD9e"),
		Reputation: common.HexToAddress("0x8004B663056A597Dffe9eCcC1965A193B7388713"),
	}
)

// finality is a parsed Chain.Finality: a block tag, or a depth when tag is "".
type finality struct {
	tag   string
	depth uint64
}

func parseFinality(s string) (finality, error) {
	switch s {
	case "", "finalized":
		return finality{tag: "finalized"}, nil
	case "safe":
		return finality{tag: "safe"}, nil
	}
	n, ok := strings.CutPrefix(s, "depth:")
	depth, err := strconv.ParseUint(n, 10, 32)
	if !ok || err != nil {
		return finality{}, fmt.Errorf("finality %q: want finalized, safe or depth:<blocks>", s)
	}
	return finality{depth: depth}, nil
}

// merged joins the entries of one chain: their registries, and their endpoints in order. All other
// settings of the entries must agree.
func merged(list []Chain) ([]Chain, error) {
	var out []Chain
	for _, c := range list {
		i := slices.IndexFunc(out, func(o Chain) bool { return o.ID == c.ID })
		if i < 0 {
			rpc := c.RPC
			c.RPC, c.Registries = nil, slices.Clone(c.Registries)
			c.addRPC(rpc)
			out = append(out, c)
			continue
		}
		o := &out[i]
		if o.Finality != c.Finality || o.Poll != c.Poll || o.MaxHeadAge != c.MaxHeadAge || o.LogRange != c.LogRange || o.Quorum != c.Quorum {
			return nil, fmt.Errorf("chain %d: its entries differ in finality, quorum or another setting; they must be the same", c.ID)
		}
		o.addRPC(c.RPC)
		for _, r := range c.Registries {
			same := slices.IndexFunc(o.Registries, func(have Registry) bool { return have.Identity == r.Identity })
			if same < 0 {
				o.Registries = append(o.Registries, r)
			} else if o.Registries[same] != r {
				return nil, fmt.Errorf("chain %d: registry %s has two reputation registries", c.ID, r.Identity)
			}
		}
	}
	return out, nil
}

// addRPC adds endpoints, each once: one that is listed twice would make a quorum with itself.
func (c *Chain) addRPC(list []string) {
	for _, u := range list {
		if !slices.Contains(c.RPC, u) {
			c.RPC = append(c.RPC, u)
		}
	}
}

func (c *Chain) normalise() (finality, error) {
	if c.ID == 0 || len(c.RPC) == 0 || len(c.Registries) == 0 {
		return finality{}, fmt.Errorf("chain %d: id, rpc and registries are needed", c.ID)
	}
	for _, s := range c.RPC {
		// Package rpc would also accept ws, ipc paths and a child process on stdio.
		if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return finality{}, fmt.Errorf("chain %d: rpc: want http or https addresses", c.ID)
		}
	}
	for _, r := range c.Registries {
		if r.Identity == (common.Address{}) {
			return finality{}, fmt.Errorf("chain %d: registry without identity address", c.ID)
		}
	}
	setDefault(&c.Poll, 12*time.Second)
	setDefault(&c.MaxHeadAge, 2*time.Minute)
	setDefault(&c.LogRange, 500)
	if setDefault(&c.Quorum, 1); c.Quorum > len(c.RPC) {
		return finality{}, fmt.Errorf("chain %d: a quorum of %d needs as many different endpoints, and there are %d", c.ID, c.Quorum, len(c.RPC))
	}
	f, err := parseFinality(c.Finality)
	if err != nil {
		return f, fmt.Errorf("chain %d: %w", c.ID, err)
	}
	return f, nil
}

func setDefault[T int | uint64 | float64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// maxBody bounds an answer: package rpc reads everything that is sent.
const maxBody = 4 << 20

var errRedirect = errors.New("endpoint redirects")

// httpClient wraps the caller's client with the limits for every call.
func httpClient(c *http.Client) *http.Client {
	if c == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil
		c = &http.Client{Transport: t}
	}
	own := *c
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = capped{own.Transport}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	return &own
}

type capped struct{ next http.RoundTripper }

func (c capped) RoundTrip(q *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if err := pauseIn(res, time.Now()); err != nil {
		res.Body.Close()
		return nil, err
	}
	res.Body = http.MaxBytesReader(nil, res.Body, maxBody)
	return res, nil
}
