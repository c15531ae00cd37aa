package reputation

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/storage"
)

// Reviews that are given here: by who has the secret of the order's page, or, signed, by whom its receipt names. They are stored with
// those of the chain, so that one rule counts them and one list shows them.

// ReviewOrder gives, changes or withdraws the review of an order.
func (r *Reputation) ReviewOrder(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderReview) (protocol.Review, error) {
	var none protocol.Review
	s, err := r.reviewed(ctx, tx, c, in)
	if err != nil {
		return none, err
	}
	of := storage.ReviewsOf(s.Handle)
	if err := tx.Feedbacks().PutAgent(ctx, "", storage.FeedbackAgent{Agent: of}, nil); err != nil { // locks its reviews
		return none, err
	}
	f, err := tx.Feedbacks().Given(ctx, of, s.ID, 0)
	fresh := errors.Is(err, storage.ErrNotFound)
	switch {
	case err != nil && !fresh:
		return none, err
	case tx.Now.After(protocol.ReviewUntil(s.PaidAt)):
		return none, protocol.Errorf(protocol.Conflict, "the order was paid more than %d days ago: its review stays as it is", protocol.ReviewWithin/(24*time.Hour))
	case fresh && in.Withdraw:
		return none, protocol.Errorf(protocol.NotFound, "the order has no review")
	case f.Doc.Changes >= protocol.MaxReviewChanges:
		return none, protocol.Errorf(protocol.Conflict, "the review was changed %d times, which is the most", protocol.MaxReviewChanges)
	case !fresh:
		f.Doc.Changes++
		if err := r.uncount(ctx, tx, f); err != nil {
			return none, err
		}
		if f.Rating != int64(in.Stars)*2000 {
			f.FeedID = "" // what was told of it is over
		}
	default:
		f = storage.Feedback{ID: protocol.NewID(protocol.ReviewID, tx.Now), Agent: of, Client: s.ID, Place: tx.Now.UnixMilli(), At: tx.Now}
	}
	if err := r.write(ctx, tx, &f, s, in); err != nil {
		return none, err
	}
	if fresh {
		_, err = tx.Feedbacks().Insert(ctx, f)
	} else {
		err = tx.Feedbacks().Put(ctx, f)
	}
	if err != nil {
		return none, err
	}
	return r.shownReview(f), tx.Feedbacks().Trim(ctx, of, protocol.MaxUncountedReviews)
}

// reviewed returns the receipt of the order that is to be reviewed, if the caller may.
func (r *Reputation) reviewed(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OrderReview) (s storage.StoredReceipt, err error) {
	token, unknown := in.Token, protocol.Errorf(protocol.NotFound, "there is no such order")
	if token == "" {
		token = c.ReadToken
	}
	switch {
	case token != "":
		x, err := tx.Orders().ByToken(ctx, protocol.SecretHash(token))
		if err != nil {
			return s, storage.IfMissing(err, unknown)
		}
		if x.Receipt == "" {
			return s, protocol.Errorf(protocol.Conflict, "the order can be reviewed once it is paid")
		}
		s, err = tx.OrderReceipts().ByID(ctx, x.Receipt)
		return s, storage.IfMissing(err, unknown)
	case in.Receipt == "" || !c.Known():
		return s, protocol.Errorf(protocol.Unauthorized, "send the last part of the order's address as Authorization: Bearer, or sign the request with the "+
			"identity that the receipt is for")
	}
	payload, _, err := r.keys().VerifyCompact(in.Receipt, protocol.OrderReceiptType, protocol.MaxReceiptToken, tx.Now)
	var claims protocol.OrderReceiptClaims
	if err != nil || strictjson.DecodeLoose(payload, &claims) != nil || claims.Issuer != r.Base {
		return s, protocol.Invalid(protocol.Fault{Pointer: "/receipt", Code: "not-valid", Detail: "is not a receipt of this node"})
	}
	if s, err = tx.OrderReceipts().ByID(ctx, claims.ID); err != nil {
		return s, storage.IfMissing(err, unknown)
	}
	may, err := r.may(ctx, tx, c, s)
	if err == nil && !may {
		err = protocol.Errorf(protocol.Forbidden, "the receipt is for somebody else")
	}
	return s, err
}

// write puts into a review what its buyer says, decides about it, and signs it.
func (r *Reputation) write(ctx context.Context, tx *storage.Tx, f *storage.Feedback, s storage.StoredReceipt, in protocol.OrderReview) error {
	c, ok := claimsOf(s.Token)
	if !ok {
		return fmt.Errorf("receipt %s cannot be read", s.ID)
	}
	f.State, f.Reason, f.Rating, f.NextAt = storage.FeedbackWaiting, protocol.ReviewIsChecked, int64(in.Stars)*2000, nil
	d := &f.Doc
	d.Value, d.Read, d.Confirmed, d.Receipt, d.GivenAt = "", true, true, s.Token, tx.Now.Unix()
	d.Text, d.Buyers, d.Buyer = clipRunes(protocol.CleanText(in.Text), protocol.MaxReviewText), s.Buyers, r.buyerName(s)
	if len(s.Buyers) == 0 && s.Client != "" {
		d.Buyers = []string{walletName(addressOf(s.Client))}
	}
	d.Order = &protocol.ReviewedOrder{Issuer: c.Issuer, Receipt: c.ID, Total: protocol.Money{Currency: c.Currency, Amount: c.Amount},
		PaidAt: time.Unix(c.PaidAt, 0).UTC()}
	useUp(f, c)
	if in.Withdraw {
		refuse(f, protocol.ReviewWithdrawn)
		f.Rating, f.Proof, f.FeedID, d.Text, d.Names, d.Signed = -1, "", "", "", nil, ""
		return nil
	}
	if err := r.settle(ctx, tx, f); err != nil {
		return err
	}
	claims := protocol.ReviewClaims{Issuer: r.Base, ID: f.ID, Shop: s.Handle, Receipt: s.ID, Buyer: d.Buyer, Rating: f.Rating, At: d.GivenAt}
	if d.Text != "" {
		claims.TextHash = protocol.TextHash(d.Text)
	}
	var err error
	d.Signed, err = r.sign(claims, protocol.ReviewType)
	return err
}

// buyerName is what everybody may know of the buyer of an order: a name that it has for this shop alone.
func (r *Reputation) buyerName(s storage.StoredReceipt) string {
	name := s.ID
	if len(s.Buyers) > 0 {
		name = s.Buyers[0]
	} else if s.Client != "" {
		name = s.Client
	}
	mac := hmac.New(sha256.New, r.MailKey)
	mac.Write([]byte("buyer\x00" + s.Handle + "\x00" + name))
	return "buyer:" + hex.EncodeToString(mac.Sum(nil)[:8])
}

// ReviewOf returns the review of the order of a receipt, nil for none.
func (r *Reputation) ReviewOf(ctx context.Context, tx *storage.Tx, receipt storage.StoredReceipt) (*protocol.Review, error) {
	f, err := tx.Feedbacks().Given(ctx, storage.ReviewsOf(receipt.Handle), receipt.ID, 0)
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	return new(r.shownReview(f)), nil
}

// Answer adds the shop's answer to the review of the order of a receipt.
func (r *Reputation) Answer(ctx context.Context, tx *storage.Tx, receipt, text string) error {
	missing := protocol.Errorf(protocol.Conflict, "the order has no review")
	s, err := tx.OrderReceipts().ByID(ctx, receipt)
	if err != nil {
		return storage.IfMissing(err, missing)
	}
	of := storage.ReviewsOf(s.Handle)
	if _, err := tx.Feedbacks().Holding(ctx, of); err != nil {
		return err
	}
	f, err := tx.Feedbacks().Given(ctx, of, s.ID, 0)
	if err != nil || f.Reason == protocol.ReviewWithdrawn {
		return cmp.Or(storage.IfMissing(err, missing), error(missing))
	}
	answer(&f, protocol.ReviewReply{Text: text, At: tx.Now})
	return tx.Feedbacks().Put(ctx, f)
}

// answer adds an answer to a review, and keeps the newest.
func answer(f *storage.Feedback, reply protocol.ReviewReply) {
	f.Doc.Responses = append(f.Doc.Responses, reply)
	if over := len(f.Doc.Responses) - protocol.MaxReviewReplies; over > 0 {
		f.Doc.Responses = f.Doc.Responses[over:]
	}
}
