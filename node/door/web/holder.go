package web

import (
	"context"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// holder returns who holds a chain identity; zero for none.
func (s *Web) holder(ctx context.Context, identity *string) (protocol.Holder, error) {
	if identity == nil || s.Held == nil {
		return protocol.Holder{}, nil
	}
	return s.Held(ctx, strings.ToLower(*identity))
}

// moved reports whether the identity of a verified author has another owner since it was verified.
func (s *Web) moved(ctx context.Context, a protocol.Author) (bool, error) {
	if !a.Verified {
		return false, nil
	}
	h, err := s.holder(ctx, a.ERC8004)
	return err == nil && h.ChangedSince(a.Proof), err
}

// heldBy says who holds an identity, and since when.
func heldBy(ctx context.Context, h protocol.Holder) templ.Component {
	who, since := ethereum(h.Owner), onDay(ctx, h.Since)
	if h.Exact {
		return say("Held by %s since %s", who, since)
	}
	return say("Held by %s at least since %s", who, since)
}

// namedBy says that a domain names the identity that is shown, and alsoAs that it has another one.
func namedBy(ctx context.Context, l protocol.AgentLink) templ.Component {
	return say("%s names this identity, at least since %s", code(l.Name), onDay(ctx, l.Since))
}

func alsoAs(ctx context.Context, l protocol.AgentLink) templ.Component {
	return say("Also registered as %s, at least since %s", code(l.Name), onDay(ctx, l.Since))
}

func onDay(ctx context.Context, t time.Time) string {
	return date(ctx, t.In(protocol.India).Format(time.DateOnly))
}

// ethereum is an Ethereum account, as people know it: its beginning and its end.
func ethereum(address string) piece {
	if len(address) != 42 {
		return code(address)
	}
	return in(`code title="`+address+`"`, address[:6]+"…"+address[38:])
}
