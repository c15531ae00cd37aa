package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
)

// A bidForm is the form of a bid that was sent, with what the node answered.
type bidForm struct {
	*sent
	outlook *protocol.BidOutlook // what the bid would get, when that was asked
}

// slot returns what a slot costs, when the bid was refused for its amount; nil otherwise.
func (f *bidForm) slot() *protocol.SlotPrice { return f.err.Slot }

// bidFieldNames are the fields of the form.
var bidFieldNames = []string{"amount", "message", "category", "name", "url"}

// bidRoutes returns the routes of forms of bids. They are not cached and not in the site map.
func (s *Web) bidRoutes() []Route {
	return []Route{
		s.forms("/:at/board", s.bid, protocol.BidForAttention.Operation, protocol.CheckBid.Operation),
		{Pattern: "/pay/:token", Handler: http.HandlerFunc(s.payPage)},
		s.forms("/pay/:token", s.payForm, protocol.ClaimPayment.Operation, protocol.PressSandbox.Operation),
		{Pattern: "/pay/:token/qr.svg", Handler: http.HandlerFunc(s.payCode)},
		{Pattern: "/bid-link", Handler: http.HandlerFunc(s.bidLinkPage)},
		s.forms("/bid-link", s.bidLinkForm, protocol.UseBidLink.Operation),
		{Pattern: "/bids/:id", Handler: http.HandlerFunc(s.bidPage)},
		s.forms("/bids/:id", s.bidPageForm, protocol.GetBid.Operation, protocol.WithdrawBid.Operation, protocol.DisputePayment.Operation,
			protocol.AddDevice.Operation),
	}
}

// bid takes the form of a board's page: it checks a bid, or makes it and leads to its payment.
func (s *Web) bid(w http.ResponseWriter, r *http.Request) {
	form, err := s.sentForm(w, r, "/@{handle}/board")
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	handle := r.PathValue("handle")
	f := &bidForm{sent: form}
	args := map[string]any{"handle": handle}
	for _, name := range bidFieldNames {
		if value := r.PostForm.Get(name); strings.TrimSpace(value) != "" {
			args[name] = value
		}
	}
	if args["amount"] != nil {
		args["amount"] = plainAmount(protocol.Rupee, r.PostForm.Get("amount"))
	}
	if f.do == "check_bid" {
		asked := map[string]any{"handle": handle}
		for _, name := range []string{"amount", "category"} {
			if args[name] != nil {
				asked[name] = args[name]
			}
		}
		var outlook protocol.BidOutlook
		if err = s.invokeForm(r, protocol.CheckBid.Operation, asked, &outlook); err == nil {
			f.outlook = &outlook
		}
	} else {
		var made protocol.BidReceipt
		if err = s.invokeForm(r, protocol.BidForAttention.Operation, args, &made); err == nil {
			s.open(w, openedBid, made.Bid.ID, made.StatusToken)
			redirect(w, r, s.local(made.PaymentURL))
			return
		}
	}
	if err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
	}
	s.showBid(w, r, handle, f)
}

// showBid writes the page of a board with the form that was sent.
func (s *Web) showBid(w http.ResponseWriter, r *http.Request, handle string, f *bidForm) {
	b, err := read(s, r, protocol.ReadAttentionBoard, map[string]any{"handle": handle})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	status := 0
	if f.err != nil {
		status = f.err.Code.Status()
		if status == http.StatusUnauthorized {
			w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
		}
	}
	s.writePrivate(w, r, status, view{
		Title: tr(r.Context(), "Attention of %s", b.Name), Path: "/@{handle}/board", Body: attentionBoardPage(b, f),
	})
}

// invokeForm invokes an operation by a form: as the signed-in user if there is one, otherwise with
// the proof of work in the field altcha.
func (s *Web) invokeForm(r *http.Request, op *protocol.Operation, args any, into any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	res, err := s.Table.Invoke(r.Context(), hall.Request{
		Op: op.Name, Args: raw, IdempotencyKey: formKey(r, op), Door: "page",
		Evidence: identity.Evidence{Network: s.Network(r), Session: session.Of(r, s.Base), ActAs: r.PostForm.Get("as"), Proof: []byte(r.PostForm.Get("altcha"))},
	})
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(res.JSON, into)
}

// typed returns the form that was sent; nil for none.
func (f *bidForm) typed() *sent {
	if f == nil {
		return nil
	}
	return f.sent
}

func bidControls(ctx context.Context, b protocol.AttentionBoard) []control {
	controls := []control{
		line("amount", "Amount in rupees").with("autocomplete", "off", "placeholder", amountHint(b)), remark(amountsSuch), box("message",
			"Message, public once the bid is live"),
	}
	if len(b.Categories) > 0 {
		categories := [][2]string{{"", english("None")}}
		for _, c := range b.Categories {
			categories = append(categories, [2]string{c.Name, c.Name + ", " + tr(ctx, "from %s##a price", rupees(c.Floor))})
		}
		controls = append(controls, choose("category", "Category", categories).chosen())
	}
	return append(controls, line("name", "Your name, shown as unverified").with("autocomplete", "name"), line("url",
		"Your https address").with("inputmode", "url"))
}

func amountHint(b protocol.AttentionBoard) string {
	if b.Price != nil {
		return b.Price.Amount
	}
	return b.Floor.Amount
}

// slotWords says what a slot costs, for a bid that gets none.
func slotWords(ctx context.Context, p protocol.SlotPrice, accepting bool) string {
	switch {
	case !accepting:
		return tr(ctx, "This board takes no bids now.")
	case p.Price != nil:
		return tr(ctx, "A slot costs at least %s.", rupees(*p.Price))
	case p.SlotAt != nil:
		return tr(ctx, "A slot may become free at %s.", indianStamp(ctx, *p.SlotAt))
	case p.DisplaceAt != nil:
		return tr(ctx, "The next live bid can be outbid from %s.", indianStamp(ctx, *p.DisplaceAt))
	}
	return tr(ctx, "No slot can be had now.")
}

// bidFields is the form of a bid.
func bidFields(b protocol.AttentionBoard, bid *bidForm) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		f := bid.typed()
		form := proven(f, "bid", "bid", "/@"+b.Handle+"/board#bid", ask(protocol.BidForAttention.Operation, f, "bid", nil, bidControls(ctx, b)...),
			proofPanel(protocol.BidForAttention.Operation), inside(`div class="send"`,
				sayIn(`button type="submit" name="do" value="bid_for_attention"`, "Bid").spaced(),
				sayIn(`button type="submit" class="quiet" name="do" value="check_bid" data-free formnovalidate`, "Check the amount")),
			hint("The next page shows how to pay. Nothing is charged unless you pay there."))
		if bid == nil {
			return form
		}
		return all{optional(bid.outlook, outlook), form}
	})
}
