package reputation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa/identity/key"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/rate"
	"stoa/storage"
)

// fetch reads the file of feedback.
func (r *Reputation) fetch(ctx context.Context, f *storage.Feedback) (later time.Duration) {
	u, err := url.Parse(f.Doc.URI)
	if err != nil || u.Host == "" || u.User != nil {
		refuse(f, protocol.UnreadableURI)
		return 0
	}
	if wait := r.hosts.take(strings.ToLower(u.Hostname()), time.Now()); wait > 0 {
		return wait
	}
	file, err := r.get(ctx, u.String(), protocol.MaxReviewFile)
	switch {
	case errors.Is(err, outbound.ErrBodyTooLarge):
		refuse(f, protocol.FileTooLarge)
	case isRefused(err):
		refuse(f, protocol.Unreachable)
	case err != nil:
		return r.later(f, protocol.Unreachable)
	default:
		readFile(f, file)
	}
	return 0
}

// isRefused reports whether the node may not fetch from an address at all.
func isRefused(err error) bool {
	_, refused := errors.AsType[*outbound.Refused](err)
	return refused
}

var errStatus = errors.New("answers with another status than 200")

// get reads a document of at most so many bytes.
func (r *Reputation) get(ctx context.Context, address string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := r.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errStatus, res.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(raw)) > most {
		err = outbound.ErrBodyTooLarge
	}
	return raw, err
}

// readOwnReceipt verifies a receipt that this node signed; false for one of another node.
func (r *Reputation) readOwnReceipt(f *storage.Feedback) bool {
	claims, ok := claimsOf(f.Doc.Receipt)
	switch {
	case !ok:
		refuse(f, protocol.ReceiptInvalid)
	case claims.Issuer != r.Base:
		return false
	default:
		readReceipt(f, r.keys(), time.Now())
	}
	return true
}

// keys are those that have signed receipts of this node.
func (r *Reputation) keys() key.Set {
	set := key.Set{Keys: []key.Public{r.Key.Published()}}
	if r.Ever != nil {
		set.Keys = append(set.Keys, r.Ever()...)
	}
	return set
}

// checkReceipt verifies a receipt, with the keys of the node that issued it, and asks that node whether
// it was revoked.
func (r *Reputation) checkReceipt(ctx context.Context, f *storage.Feedback) (later time.Duration) {
	if r.readOwnReceipt(f) {
		return 0
	}
	claims, _ := claimsOf(f.Doc.Receipt)
	held := false
	if err := r.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		shop, err := tx.Feedbacks().Agent(ctx, f.Agent)
		if err == nil {
			_, held, err = r.held(ctx, tx, f.Doc.Receipt, claims, shop.Handle)
		} else if errors.Is(err, storage.ErrNotFound) {
			err = nil
		}
		return err
	}); err != nil {
		return time.Minute
	}
	if held {
		takeReceipt(f, claims)
		return 0
	}
	if !slices.Contains(r.Trusted, claims.Issuer) {
		refuse(f, protocol.ReceiptIssuer)
		return 0
	}
	set, err := r.keysOf(ctx, claims.Issuer)
	if err != nil {
		return r.later(f, protocol.Unreachable)
	}
	if readReceipt(f, set, time.Now()); f.State != storage.FeedbackWaiting {
		return 0
	}
	order := f.Doc.Order
	f.Doc.Order = nil // until the node has said that it is not revoked
	raw, err := r.get(ctx, claims.Issuer+"/api/public/order-receipts/"+order.Receipt, 4096)
	var status protocol.ReceiptStatus
	if err != nil || json.Unmarshal(raw, &status) != nil || status.ID != order.Receipt {
		return r.later(f, protocol.ReceiptUnknown)
	}
	switch status.Status {
	case "revoked":
		refuse(f, protocol.ReceiptRevoked)
		return 0
	case "refunded":
		refuse(f, protocol.OrderRefunded)
		return 0
	}
	f.Doc.Order = order
	return 0
}

// keysOf returns the published keys of a trusted node, an hour old at most.
func (r *Reputation) keysOf(ctx context.Context, node string) (key.Set, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok := r.foreign[node]; ok && time.Since(k.at) < keysKept {
		return k.set, nil
	}
	raw, err := r.get(ctx, node+"/.well-known/http-message-signatures-directory", key.MaxSetBytes)
	if err != nil {
		return key.Set{}, err
	}
	set, err := key.ParseSet(raw)
	if err == nil {
		if r.foreign == nil {
			r.foreign = map[string]foreignKeys{}
		}
		r.foreign[node] = foreignKeys{set, time.Now()}
	}
	return set, err
}

// foreignKeys are the keys of a trusted node when they were read.
type foreignKeys struct {
	set key.Set
	at  time.Time
}

// hostRates limit how often one host is asked for files.
type hostRates struct {
	mu    sync.Mutex // guards table
	table rate.Table[string]
}

// take returns how long to wait before the host may be asked.
func (h *hostRates) take(host string, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.table.Most = maxHosts
	next, wait := perHost.Take(h.table.Free(host), now.UnixNano(), 1)
	if wait > 0 {
		return wait
	}
	if !h.table.Room(host, now.UnixNano()) {
		return time.Minute
	}
	h.table.Set(host, next)
	return 0
}
