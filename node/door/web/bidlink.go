package web

import (
	"context"
	"net/http"

	"stoa/protocol"
)

// The page of a link in a notice to the owner of an attention board. Opening it does nothing, because
// link previews open it too; its buttons do, once.

func (s *Web) bidLinkPage(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	var l protocol.BidLink
	if err := s.invokeOpen(r, protocol.ReadBidLink.Operation, map[string]any{"ticket": ticket}, &l); err != nil {
		s.failLink(w, r, err)
		return
	}
	s.writePrivate(w, r, 0, view{Title: bidLinkTitle(r.Context(), l), Path: "/bid-link", Secret: true, Body: bidLinkBody(l, ticket)})
}

// failLink answers for a link that does nothing: one that has ended leads to the owner's own page.
func (s *Web) failLink(w http.ResponseWriter, r *http.Request, err error) {
	if protocol.CodeOf(err) != protocol.Gone {
		s.failSecret(w, r, err)
		return
	}
	s.writePrivate(w, r, http.StatusGone, view{Title: tr(r.Context(), "This link has ended"), Path: "/bid-link", Secret: true, Body: bidLinkEnded()})
}

// linkDone says what a link has done.
var linkDone = map[protocol.BidLinkDo]string{
	protocol.LinkConfirm: doneWords[protocol.ConfirmBidPayment.Name], protocol.LinkDeny: doneWords[protocol.DenyBidPayment.Name],
	protocol.LinkApprove: doneWords[protocol.ApproveBid.Name],
}

func (s *Web) bidLinkForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	do := protocol.BidLinkDo(r.PostForm.Get("do"))
	var b protocol.OwnBid
	if err == nil {
		err = s.invokeOpen(r, protocol.UseBidLink.Operation, map[string]any{"ticket": r.PostForm.Get("ticket"), "do": do}, &b)
	}
	if err != nil {
		s.failLink(w, r, err)
		return
	}
	s.writePrivate(w, r, 0, view{Title: tr(r.Context(), linkDone[do]), Path: "/bid-link", Secret: true, Body: bidLinkDone(tr(r.Context(), linkDone[do]), b)})
}

func bidLinkTitle(ctx context.Context, l protocol.BidLink) string {
	if l.Bid.State == protocol.BidClaimed {
		return tr(ctx, "Has this payment arrived?")
	}
	return tr(ctx, "Show this text on your board?")
}

// linkButtons are the buttons of the page, by what they do.
var linkButtons = map[protocol.BidLinkDo]struct{ label, class string }{
	protocol.LinkConfirm: {english("It has arrived"), ""}, protocol.LinkDeny: {english("It has not arrived"), "quiet"},
	protocol.LinkApprove: {english("Show the text"), ""},
}
