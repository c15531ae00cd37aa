package paytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Razorpay answers as the vendor's API does, in memory: links, payments, refunds, webhooks. It is an
// http.Handler for httptest.NewServer, safe for concurrent use. What payers do is in payer.go,
// webhooks are in hooks.go, failures in fault.go.
type Razorpay struct {
	KeyID, KeySecret string
	Now              func() time.Time
	mux              *http.ServeMux

	mu       sync.Mutex // guards what follows
	secret   string     // of webhooks
	fault    func(*http.Request) Fault
	seq      int
	links    []*fakeLink // in the order of their creation, as all lists
	payments []*fakePayment
	refunds  []*fakeRefund
	pending  []Hook
	keys     map[string]sentRefund // by payment and idempotency key
}

// NewRazorpay returns a server without links. now nil is the system's clock.
func NewRazorpay(keyID, keySecret, webhookSecret string, now func() time.Time) *Razorpay {
	if now == nil {
		now = time.Now
	}
	s := &Razorpay{KeyID: keyID, KeySecret: keySecret, Now: now, secret: webhookSecret, keys: map[string]sentRefund{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payment_links", s.route(s.createLink))
	mux.HandleFunc("GET /v1/payment_links", s.route(s.listLinks))
	mux.HandleFunc("GET /v1/payment_links/{id}", s.route(s.getLink))
	mux.HandleFunc("POST /v1/payment_links/{id}/cancel", s.route(s.cancelLink))
	mux.HandleFunc("POST /v1/payments/{id}/refund", s.route(s.createRefund))
	mux.HandleFunc("GET /v1/refunds/{id}", s.route(s.getRefund))
	mux.HandleFunc("/", s.route(func(*http.Request, []byte) (any, *problem) {
		return nil, &problem{http.StatusNotFound, "The requested URL was not found on the server."}
	}))
	s.mux = mux
	return s
}

type fakeLink struct {
	ID, Ref, Currency, Description, Status string
	Amount, Paid, Created, Updated         int64
	ExpireBy, Expired, Cancelled           int64
	Notes                                  map[string]string
	CallbackURL                            string
}

type fakePayment struct {
	ID       string
	link     *fakeLink
	Amount   int64
	Status   string // created, failed, captured, refunded
	Created  int64
	Captured int64
	RRN      string
}

type fakeRefund struct {
	ID      string
	payment *fakePayment
	Amount  int64
	Status  string // pending, processed, failed
	Created int64
}

// sentRefund is what was asked for with an idempotency key.
type sentRefund struct {
	body   string
	refund *fakeRefund
}

// A problem is an answer that is not a success.
type problem struct {
	status      int
	description string
}

func (s *Razorpay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.nextFault(r)
	if f.before(w) {
		return
	}
	w, done := f.after(w)
	defer done()
	if id, secret, ok := r.BasicAuth(); !ok || id != s.KeyID || secret != s.KeySecret {
		answer(w, nil, &problem{http.StatusUnauthorized, "Authentication failed"})
		return
	}
	s.tick()
	s.mux.ServeHTTP(w, r)
}

func (s *Razorpay) route(do func(*http.Request, []byte) (any, *problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		v, p := do(r, raw)
		answer(w, v, p)
	}
}

func answer(w http.ResponseWriter, v any, p *problem) {
	w.Header().Set("Content-Type", "application/json")
	if p == nil {
		json.NewEncoder(w).Encode(v)
		return
	}
	code := "BAD_REQUEST_ERROR"
	if p.status >= 500 {
		code = "SERVER_ERROR"
	}
	w.WriteHeader(p.status)
	json.NewEncoder(w).Encode(errorBody(code, p.description))
}

func errorBody(code, description string) map[string]any {
	return map[string]any{"error": map[string]any{
		"code": code, "description": description, "source": "business", "step": "payment_initiation", "reason": "input_validation_failed",
	}}
}

// id returns an id as the vendor's are: a prefix and fourteen letters and digits.
func (s *Razorpay) id(prefix string) string {
	s.seq++
	return fmt.Sprintf("%s_Fake%010d", prefix, s.seq)
}

func bad(description string) *problem { return &problem{http.StatusBadRequest, description} }

var errNoID = bad("The id provided does not exist")

func (s *Razorpay) createLink(_ *http.Request, raw []byte) (any, *problem) {
	var in struct {
		Amount        int64             `json:"amount"`
		Currency      string            `json:"currency"`
		AcceptPartial bool              `json:"accept_partial"`
		ReferenceID   string            `json:"reference_id"`
		Description   string            `json:"description"`
		ExpireBy      int64             `json:"expire_by"`
		Notes         map[string]string `json:"notes"`
		CallbackURL   string            `json:"callback_url"`
	}
	now := s.Now().Unix()
	switch err := json.Unmarshal(raw, &in); {
	case err != nil:
		return nil, bad("The request body is not valid JSON")
	case in.Amount < 100:
		return nil, bad("The amount must be atleast INR 1.00")
	case in.Currency != "INR":
		return nil, bad("Currency is not supported")
	case len(in.ReferenceID) > 40:
		return nil, bad("The reference id may not be greater than 40 characters.")
	case in.ExpireBy != 0 && in.ExpireBy < now+15*60:
		return nil, bad("timestamp must be atleast 15 minutes in future")
	case in.ExpireBy > now+183*24*3600:
		return nil, bad("timestamp cannot be more than 6 months in future")
	case len(in.Notes) > 15:
		return nil, bad("notes may have at most 15 pairs")
	case in.ReferenceID != "" && slices.ContainsFunc(s.links, func(l *fakeLink) bool { return l.Ref == in.ReferenceID }):
		return nil, bad("payment link creation with reference ID already attempted")
	}
	l := &fakeLink{
		ID: s.id("plink"), Ref: in.ReferenceID, Currency: in.Currency, Description: in.Description, Status: "created", Amount: in.Amount,
		Created: now, Updated: now, ExpireBy: in.ExpireBy, Notes: in.Notes, CallbackURL: in.CallbackURL,
	}
	s.links = append(s.links, l)
	return s.render(l), nil
}

func (s *Razorpay) listLinks(r *http.Request, _ []byte) (any, *problem) {
	ref, count := r.URL.Query().Get("reference_id"), 10
	if n, err := strconv.Atoi(r.URL.Query().Get("count")); err == nil {
		count = n
	}
	found := []any{}
	for _, l := range slices.Backward(s.links) { // newest first
		if (ref == "" || l.Ref == ref) && len(found) < count {
			found = append(found, s.render(l))
		}
	}
	return map[string]any{"payment_links": found}, nil
}

func (s *Razorpay) getLink(r *http.Request, _ []byte) (any, *problem) {
	if l := s.link(r.PathValue("id")); l != nil {
		return s.render(l), nil
	}
	return nil, errNoID
}

func (s *Razorpay) cancelLink(r *http.Request, _ []byte) (any, *problem) {
	l := s.link(r.PathValue("id"))
	switch {
	case l == nil:
		return nil, errNoID
	case l.Status != "created":
		return nil, bad("Payment Link cannot be cancelled in " + l.Status + " state")
	}
	l.Status, l.Cancelled, l.Updated = "cancelled", s.Now().Unix(), s.Now().Unix()
	s.emit("payment_link.cancelled", map[string]any{"payment_link": s.render(l)})
	return s.render(l), nil
}

func (s *Razorpay) link(id string) *fakeLink {
	if i := slices.IndexFunc(s.links, func(l *fakeLink) bool { return l.ID == id }); i >= 0 {
		return s.links[i]
	}
	return nil
}

// tick expires the links whose time has come.
func (s *Razorpay) tick() {
	for _, l := range s.links {
		if l.ExpireBy != 0 && l.ExpireBy <= s.Now().Unix() && (l.Status == "created" || l.Status == "partially_paid") {
			l.Status, l.Expired, l.Updated = "expired", l.ExpireBy, l.ExpireBy
			s.emit("payment_link.expired", map[string]any{"payment_link": s.render(l)})
		}
	}
}

// render returns a link as the API writes it.
func (s *Razorpay) render(l *fakeLink) map[string]any {
	var list any // null without payments
	for _, p := range s.payments {
		if p.link == l && (p.Status == "captured" || p.Status == "refunded") {
			rows, _ := list.([]any)
			list = append(rows, map[string]any{
				"payment_id": p.ID, "amount": p.Amount, "status": p.Status, "method": "upi", "created_at": p.Created, "updated_at": p.Captured,
			})
		}
	}
	return map[string]any{
		"id": l.ID, "accept_partial": false, "amount": l.Amount, "amount_paid": l.Paid, "currency": l.Currency, "description": l.Description,
		"reference_id": l.Ref, "status": l.Status, "short_url": "https://rzp.io/i/" + l.ID[len("plink_"):], "expire_by": l.ExpireBy, "expired_at": l.Expired,
		"cancelled_at": l.Cancelled, "created_at": l.Created, "updated_at": l.Updated, "notes": l.Notes, "payments": list, "user_id": "", "upi_link": false,
		"callback_url": l.CallbackURL, "callback_method": "get", "customer": map[string]any{}, "notify": map[string]any{"sms": false, "email": false},
		"first_min_partial_amount": 0, "reminder_enable": false, "reminders": []any{},
	}
}
