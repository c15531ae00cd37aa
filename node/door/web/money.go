package web

import (
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The life of a payment: a page for operators, and one of each bid for the owner of its board.

// readMoney traces what the operator asks for, if anything.
func (o *operatorView) readMoney(s *Web, r *http.Request) error {
	if o.Form.get("id") == "" {
		return nil
	}
	err := o.ask(s, r, o.Page.list, o.Form.args)
	if protocol.CodeOf(err) == protocol.NotFound {
		o.Missing = protocol.AsError(err).Detail
		return nil
	}
	return err
}

// ownMoneyPage traces the money of a bid for the owner of its board.
func (s *Web) ownMoneyPage(w http.ResponseWriter, r *http.Request) {
	var found protocol.MoneyTraces
	err := s.invokeSignedIn(r, protocol.TraceOwnPayment.Operation, map[string]any{"id": r.PathValue("of")}, &found)
	switch {
	case protocol.CodeOf(err) == protocol.Unauthorized:
		toSignIn(w, r)
	case err != nil:
		s.Fail(w, r, err)
	default:
		s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Money of a bid"), Path: "/account", Of: found.Items[0].Handle, Body: ownMoneyBody(found.Items)})
	}
}

// ownMoneyBody is the owner's page of a bid's money.
func ownMoneyBody(items []protocol.MoneyTrace) templ.Component {
	return all{
		crumbs("Breadcrumb", linkAs(`class="back"`, "/account/attention?"+query("handle", items[0].Handle), "Attention board")),
		inside(`div class="lead"`, ownTitle("Money of a bid", items[0].Handle)),
		moneyTraces(items),
	}
}
