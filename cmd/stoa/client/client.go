// Package client is the Go client of a node: it calls any declared operation
// over HTTP, pays with a proof of work or signs where that is needed, and gives
// problem documents back as errors. The command line is built on it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/pow"
)

const (
	timeout   = 30 * time.Second // of one exchange; solving is not counted
	maxAnswer = 8 << 20          // bytes; a full page of long posts is 2 MiB
	maxProofs = 2                // fresh challenges that are solved after a refusal
)

// Options of a client. The zero value reads, and writes with a proof of work.
type Options struct {
	Key     key.Pair // signs each request (RFC 9421); the zero Pair signs none
	AgentID string   // chain identity to sign for, sent as Agent-Identity and signed; "" for none
	Token   string   // API token, sent as Authorization: Bearer; not with Key

	UserAgent string
	Workers   int          // cores to solve with; default all
	HTTP      *http.Client // default: a guarded one that may reach this base, loopback included
}

// A Client calls one node. It is safe for concurrent use.
type Client struct {
	base   *url.URL
	target httpsig.Target
	o      Options
	alg    httpsig.Algorithm
	files  *http.Client // for operations that take or give a file
}

// New returns a client of the node at base, such as https://n1.example or
// http://127.0.0.1:8080.
func New(base string, o Options) (*Client, error) {
	target, err := httpsig.ParseTarget(base)
	if err != nil {
		return nil, fmt.Errorf("address of the node: %w", err)
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("address of the node: %w", err)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("address of the node: %s has a path; give scheme and host only", base)
	}
	c := &Client{base: &url.URL{Scheme: u.Scheme, Host: u.Host}, target: target, o: o}
	switch {
	case !o.Key.IsZero() && o.Token != "":
		return nil, errors.New("give a key or a token, not both: a request has one writer")
	case o.Key.IsZero() && o.AgentID != "":
		return nil, errors.New("a chain identity needs the key that signs for it")
	case !o.Key.IsZero():
		k, err := httpsig.NewKey(o.Key.Public())
		if err != nil {
			return nil, err
		}
		c.alg = k.Algorithm()
	}
	if c.o.Workers <= 0 {
		c.o.Workers = runtime.GOMAXPROCS(0)
	}
	c.files = c.o.HTTP
	if c.o.HTTP == nil {
		c.o.HTTP, c.files = guarded(u, o, timeout, maxAnswer), guarded(u, o, fileTimeout, maxFile)
	}
	return c, nil
}

// guarded may reach what the caller named: its port, and private addresses.
func guarded(u *url.URL, o Options, timeout time.Duration, most int64) *http.Client {
	ports := []uint16{443}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		ports = []uint16{uint16(n)}
	}
	return outbound.New(outbound.Options{
		AllowPrivate: true, Ports: ports, UserAgent: o.UserAgent, Timeout: timeout, MaxBody: most,
	})
}

// A Result is the answer of a call that succeeded.
type Result struct {
	Status int
	Header http.Header
	Body   []byte
}

// A Call is one operation with its input.
type Call struct {
	Operation string
	Args      map[string]any // members of the input, as JSON would decode them or as Go values
	// IdempotencyKey makes it safe to send a creating call again: 1 to 64 visible
	// ASCII characters. "" sends none.
	IdempotencyKey string
	File           io.ReadSeeker // the body of an operation that takes a file; nil is an empty one
	Out            io.Writer     // where an operation's file goes, of any size; nil keeps it in the Result, up to 8 MiB
}

// Call calls an operation by name; see Do.
func (c *Client) Call(ctx context.Context, operation string, args map[string]any) (*Result, error) {
	return c.Do(ctx, Call{Operation: operation, Args: args})
}

// Do calls an operation. Without key and token it solves a proof of work where
// the operation takes one; and it solves a fresh challenge that the node sends
// with a refusal. Nothing else is tried again. A refusal is a *Problem, which
// wraps a *protocol.Error.
func (c *Client) Do(ctx context.Context, call Call) (*Result, error) {
	op := protocol.Lookup(call.Operation)
	if op == nil || op.Doors&protocol.HTTP == 0 {
		return nil, fmt.Errorf("there is no operation %q over HTTP", call.Operation)
	}
	if op.Streams() {
		return nil, fmt.Errorf("%s does not end: read it as server-sent events, for example with curl -N %s%s", op.Name, c.base, op.HTTP.Path)
	}
	plan, err := newPlan(op, call.Args)
	if err != nil {
		return nil, err
	}
	if op.Access&protocol.Proof != 0 && c.o.Key.IsZero() && c.o.Token == "" {
		ch, err := c.challenge(ctx, op.Purpose)
		if err != nil {
			return nil, fmt.Errorf("get a challenge: %w", err)
		}
		if err := c.pay(ctx, plan, ch); err != nil {
			return nil, err
		}
	}
	plan.file, plan.out = call.File, call.Out
	for try := 0; ; try++ {
		res, err := c.send(ctx, plan, call.IdempotencyKey)
		problem, refused := errors.AsType[*Problem](err)
		if !refused || problem.Fresh == nil || try == maxProofs {
			return res, err
		}
		if err := c.pay(ctx, plan, *problem.Fresh); err != nil {
			return nil, err
		}
	}
}

func (c *Client) challenge(ctx context.Context, purpose string) (pow.Challenge, error) {
	plan, err := newPlan(protocol.GetChallenge.Operation, map[string]any{"purpose": purpose})
	if err != nil {
		return pow.Challenge{}, err
	}
	res, err := c.send(ctx, plan, "")
	if err != nil {
		return pow.Challenge{}, err
	}
	var ch pow.Challenge
	if err := json.Unmarshal(res.Body, &ch); err != nil {
		return pow.Challenge{}, fmt.Errorf("read challenge: %w", err)
	}
	return ch, nil
}

func (c *Client) pay(ctx context.Context, p *plan, ch pow.Challenge) error {
	s, err := pow.SolveParallel(ctx, ch, c.o.Workers)
	if err != nil {
		return fmt.Errorf("solve proof of work: %w", err)
	}
	p.proof = &s
	return nil
}

// send makes one exchange. Each attempt has its own signature, because a nonce is valid
// once.
func (c *Client) send(ctx context.Context, p *plan, idemKey string) (*Result, error) {
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, p.op.HTTP.Method, c.base.String()+p.target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		req.Body, req.GetBody = http.NoBody, nil
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	c.attach(req, p)
	req.Header.Set("Accept", "application/json, application/problem+json;q=0.9, */*;q=0.1")
	if c.o.UserAgent != "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	if p.proof != nil && body == nil {
		req.Header.Set("Proof-Of-Work", p.proof.Encode())
	}
	if idemKey != "" {
		req.Header.Set("Idempotency-Key", idemKey)
	}
	if p.secret != "" {
		if c.o.Token != "" {
			return nil, protocol.Invalid(protocol.Fault{Pointer: "/" + p.op.Secret, Code: "two-tokens",
				Detail: "cannot be sent together with an owner's token; leave one of them out"})
		}
		req.Header.Set("Authorization", "Bearer "+p.secret)
	}
	if err := c.identify(req, body); err != nil {
		return nil, err
	}
	resp, err := c.transport(p).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if p.op.GivesFile() && p.out != nil && resp.StatusCode == p.op.HTTP.Status {
		_, err := io.Copy(p.out, resp.Body)
		return &Result{Status: resp.StatusCode, Header: resp.Header}, err
	}
	answer, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, readProblem(resp, answer)
	}
	return &Result{Status: resp.StatusCode, Header: resp.Header, Body: answer}, nil
}

// identify adds the token, or the signature, which is made last.
func (c *Client) identify(req *http.Request, body []byte) error {
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	if c.o.Key.IsZero() {
		return nil
	}
	o := httpsig.SignOptions{Key: c.o.Key.Signer(), Algorithm: c.alg}
	if c.o.AgentID != "" {
		req.Header.Set("Agent-Identity", c.o.AgentID)
	}
	if req.Header.Get("Idempotency-Key") != "" {
		o.Extra = []string{"idempotency-key"}
	}
	if err := httpsig.SignRequest(req, c.target, body, o); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	return nil
}
