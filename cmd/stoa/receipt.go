package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stoa/cmd/stoa/client"
	"stoa/identity/key"
	"stoa/node/out/outbound"
	"stoa/protocol"
)

// directoryPath is where a node publishes its keys (Web Bot Auth).
const directoryPath = "/.well-known/http-message-signatures-directory"

type verifyReceiptCmd struct {
	Keys   string `required:"" placeholder:"FILE|URL" help:"JWK Set of the node: a file, or the node's address, from which it is fetched."`
	Node   string `placeholder:"URL" help:"Address of the node that must have signed. With an address in --keys, default: that one."`
	Client string `placeholder:"0x…" help:"Account that the receipt must be for."`
	File   string `arg:"" optional:"" help:"The receipt, a compact JWS; - or nothing reads standard input."`
}

func (c *verifyReceiptCmd) Help() string {
	return "The signature and the claims are checked here. Whether the shop has revoked the receipt is only known to the node: " +
		"it is asked when --keys is an address."
}

func (c *verifyReceiptCmd) Run(w *world) error {
	raw, err := readInput(w, c.File)
	if err != nil {
		return err
	}
	keys, node, err := c.keys(w)
	if err != nil {
		return err
	}
	payload, k, err := keys.VerifyCompact(strings.TrimSpace(string(raw)), protocol.OrderReceiptType, protocol.MaxReceiptToken, time.Now())
	if err != nil {
		return notVerified("%w", err)
	}
	var claims protocol.OrderReceiptClaims
	if err := json.Unmarshal(payload, &claims); err != nil || !protocol.IsID(protocol.ReceiptID, claims.ID) {
		return notVerified("the payload is not that of an order receipt")
	}
	if node != "" && claims.Issuer != node {
		return notVerified("it is signed by a key of %s and says that %s issued it", node, claims.Issuer)
	}
	if c.Client != "" && !strings.HasSuffix(claims.Client, ":"+strings.ToLower(c.Client)) && claims.Client != strings.ToLower(c.Client) {
		return notVerified("it is for the client %q", claims.Client)
	}
	t := newTable(w.stdout)
	for _, row := range [][2]string{
		{"signed", "by the key " + k.Thumbprint + " of the node"}, {"node", claims.Issuer},
		{"shop", "@" + claims.Shop}, {"identity", claims.Agent}, {"order", claims.Order},
		{"paid", claims.Currency + " " + claims.Amount + " on " + time.Unix(claims.PaidAt, 0).UTC().Format(time.RFC3339)},
		{"payment", paymentKnown(claims)}, {"client", claims.Client}, {"receipt", claims.ID},
	} {
		if row[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if node == "" {
		fmt.Fprintln(w.stderr, "Nobody was asked which node these keys are of: compare the node with the one you took them from, or give --node.")
	}
	return c.revoked(w, node, claims.ID)
}

// paymentKnown says how the payment of a receipt is known, and whether a review of its order can count as one of a paid order.
func paymentKnown(c protocol.OrderReceiptClaims) string {
	why := protocol.ReviewCase{Order: protocol.ReviewedOrder{Known: c.Known, Test: c.Test, Left: protocol.Money{Currency: c.Currency, Amount: c.Amount}},
		Floors: protocol.ReviewFloors{c.Currency: 1}}.Judge() // what is the least, each node says
	return map[protocol.ReviewReason]string{
		protocol.ByProvider:    "provider: the payment provider reported it to the node; a review counts",
		protocol.ByConfirmed:   "confirmed: the buyer, whom the node knows, reported it and the shop confirmed it; a review counts",
		protocol.TestOrder:     "TEST: no money moved; no review counts",
		protocol.ReceiptStated: "stated: only the shop says that it was paid; no review counts",
	}[why]
}

// A refusal is the verdict on what was to be verified: exit status 3.
type refusal struct{ error }

func notVerified(format string, args ...any) error {
	return refusal{fmt.Errorf("not verified: "+format, args...)}
}

// A notServed is the status of an answer that is no document.
type notServed struct {
	address string
	code    int
	body    []byte
}

func (e notServed) Error() string {
	return fmt.Sprintf("%s: %d %s", e.address, e.code, http.StatusText(e.code))
}

// fetchFrom reads a document of a node, of at most that many bytes. The error is a notServed when its status is not 200.
func fetchFrom(ctx context.Context, base, path string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, usage{err}
	}
	o := outbound.Options{AllowPrivate: true, UserAgent: "stoa/" + buildVersion(), MaxBody: most}
	if n, err := strconv.ParseUint(req.URL.Port(), 10, 16); err == nil {
		o.Ports = []uint16{uint16(n)}
	}
	res, err := outbound.New(o).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = notServed{base + path, res.StatusCode, body}
	}
	return body, err
}

// keys reads the key set, and returns the address of the node that must have signed; "" when it is not
// known.
func (c *verifyReceiptCmd) keys(w *world) (key.Set, string, error) {
	node := strings.TrimRight(c.Node, "/")
	u, err := url.Parse(c.Keys)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		set, err := readKeys(c.Keys)
		return set.Set, node, err
	}
	base := u.Scheme + "://" + u.Host
	if node == "" {
		node = base
	}
	if node != base {
		return key.Set{}, "", usagef("the keys are of %s, and --node is %s", base, node)
	}
	raw, err := fetchFrom(w.ctx, base, directoryPath, key.MaxSetBytes)
	if err != nil {
		return key.Set{}, "", err
	}
	set, err := parseKeys(c.Keys, raw)
	return set.Set, node, err
}

// revoked asks the node whether the receipt is revoked, when its address was given as that of the keys.
func (c *verifyReceiptCmd) revoked(w *world, node, id string) error {
	if !strings.HasPrefix(c.Keys, "http") {
		fmt.Fprintf(w.stderr, "Whether it was revoked since is not known offline: ask the node, GET /api/public/order-receipts/%s\n", id)
		return nil
	}
	n, err := client.New(node, client.Options{})
	if err != nil {
		return err
	}
	res, err := n.Call(w.ctx, protocol.GetReceiptStatus.Name, map[string]any{"id": id})
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Code == protocol.NotFound {
		fmt.Fprintln(w.stderr, "The node does not keep this receipt any more, so it is not known whether it was revoked.")
		return nil
	}
	if err != nil {
		return err
	}
	var status protocol.ReceiptStatus
	if err := json.Unmarshal(res.Body, &status); err != nil {
		return err
	}
	if status.RevokedAt != nil {
		return notVerified("the shop revoked it on %s", status.RevokedAt.Format(time.RFC3339))
	}
	fmt.Fprintln(w.stderr, "The node says that it is not revoked.")
	return nil
}
