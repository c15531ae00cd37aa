package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of a link in a notice to the owner of an attention board.

const bidLinkPath = "/bid-link"

func (s *Web) bidLinkPage(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	var l protocol.BidLink
	if err := s.invokeOpen(r, protocol.ReadBidLink.Operation, map[string]any{"ticket": ticket}, &l); err != nil {
		s.failLink(w, r, err)
		return
	}
	s.writeLink(w, r, 0, bidLinkPath, bidLinkTitle(r.Context(), l), bidLinkBody(l, ticket))
}

// failLink answers for a link that does nothing: one that has ended leads to the owner's own page.
func (s *Web) failLink(w http.ResponseWriter, r *http.Request, err error) {
	if protocol.CodeOf(err) != protocol.Gone {
		s.failSecret(w, r, err)
		return
	}
	title := tr(r.Context(), "This link has ended")
	s.writeLink(w, r, http.StatusGone, bidLinkPath, title, linkEnded(title,
		tr(r.Context(), "It was used before, or the bid has changed since, or notices go to another address now."),
		signInLink("/account/attention", "The bids on your board")))
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
	done := tr(r.Context(), linkDone[do])
	s.writeLink(w, r, 0, bidLinkPath, done, bidLinkDone(done, b))
}

func bidLinkTitle(ctx context.Context, l protocol.BidLink) string {
	if l.Bid.State == protocol.BidClaimed {
		return tr(ctx, "Has this payment arrived?")
	}
	return tr(ctx, "Show this text on your board?")
}

// linkButtons are the buttons of the page, by what they do.
var linkButtons = map[protocol.BidLinkDo]button{
	protocol.LinkConfirm: {english("It has arrived"), ""}, protocol.LinkDeny: {english("It has not arrived"), "quiet"},
	protocol.LinkApprove: {english("Show the text"), ""},
}

func bidLinkBody(l protocol.BidLink, ticket string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		about, note := para("The bid is paid and has its place. Nobody sees its text before you agree."),
			hint("This link works once. To remove the bid instead, %s.", link("/account/attention", "sign in"))
		if l.Bid.State == protocol.BidClaimed {
			about = para("Look in your bank's app for the reference %s. Until you decide, the bid waits.", code(deref(l.Bid.UTR)))
			if l.Bid.HoldExpiresAt != nil {
				note = hint("Before %s. This link works once.", indianClock(ctx, *l.Bid.HoldExpiresAt))
			}
		}
		return all{
			inside(`div class="lead"`, in("h1", bidLinkTitle(ctx, l)), in(`p class="amount"`, rupees(l.Bid.Amount)),
				inside(`p class="meta"`, spanned("to %s", "@"+l.Bid.Handle), testMark(l.Bid.Test))),
			about, linkForm(bidLinkPath, "", hidden("ticket", ticket), l.Do, linkButtons, note), bidSaid(l.Bid),
		}
	})
}

func bidLinkDone(title string, b protocol.OwnBid) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		state := templ.Component(in(`p role="status" class="`+stateClass(b.State)+`"`, stateWords(ctx, b.State, false, b.Handle)))
		if b.State == protocol.BidRefunding {
			state = sayIn(`p role="status" class="card"`,
				"No slot could be had. Send the money back by hand, then enter the reference on the page of your board.")
		}
		return all{linkTitle(title), state, bidSaid(b), signInLink("/account/attention?handle="+b.Handle, "All bids on your board")}
	})
}

// bidSaid is the text of a bid, for the owner of the board.
func bidSaid(b protocol.OwnBid) templ.Component {
	return inside(`section aria-labelledby="said"`, heading("said", "The bid of %s", called(b.Bidder.Name)),
		inside(`div class="said"`, userText(b.Message), optional(b.URL, linked)))
}
