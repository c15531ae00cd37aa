package web

import (
	"context"
	"net/http"

	"stoa/protocol"
)

func (s *Web) moderation(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.ReadModerationLog.Operation)
	if err != nil {
		return view{}, err
	}
	log, err := list(s, r, protocol.ReadModerationLog, f)
	if err != nil {
		return view{}, err
	}
	next := f.next("/moderation", log.Next)
	return view{
		Title: tr(r.Context(), "Moderation log"), Description: tr(r.Context(), "What was hidden, restored, deleted or blocked on this node, and why."),
		Next: next, Refused: f.err, Stray: f.otherFaults(), Data: log, Body: moderationPage(f, log.Items, next),
	}, nil
}

// deed returns what was done, for a line of the moderation log.
func deed(ctx context.Context, e protocol.ModerationEntry) string {
	done := map[protocol.Action]string{
		protocol.ActionHide: english("hidden"), protocol.ActionRestore: english("restored"), protocol.ActionDismiss: english("reports dismissed"),
		protocol.ActionDelete: english("deleted"), protocol.ActionBlock: english("blocked"), protocol.ActionLift: english("block lifted"),
	}[e.Action]
	return word(ctx, e.Kind) + " " + tr(ctx, done)
}

// readable reports whether the post of a line can still be read.
func readable(e protocol.ModerationEntry) bool {
	return e.Kind == "post" && (e.Action == protocol.ActionRestore || e.Action == protocol.ActionDismiss)
}
