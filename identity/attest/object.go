package attest

import (
	"cmp"
	"net/url"
	"strings"

	"stoa/identity/integrity"
	"stoa/identity/strictjson"
	"stoa/protocol"
)

// written returns the author of the object, and what it says about itself beside what the author signed. The author is nil where none has
// signed, by the kind of the object.
func (c *check) written() (*protocol.Author, integrity.Claim, error) {
	d := c.doc
	claim := integrity.Claim{ID: d.Subject.ID, Evidence: d.Evidence, Statement: d.Statement}
	switch c.Kind {
	case KindPost:
		var p Post
		if err := strictjson.Decode(d.Subject.Object, &p); err != nil {
			return nil, claim, err
		}
		claim.Kind, claim.Title, claim.Body, claim.Tags, claim.ReplyTo = p.Kind, p.Title, p.Body, p.Tags, p.InReplyTo
		claim.Name, claim.Handle, claim.Actor = p.Author.Given(), text(p.Author.Handle), text(p.Author.Actor)
		claim.Board, claim.Published = p.Board, p.CreatedAt
		if p.EditedAt != nil {
			claim.Published = *p.EditedAt
		}
		if claim.Actor == "" {
			base, _, _ := strings.Cut(claim.ID, "/ap/posts/")
			claim.Actor = base + "/ap/anon"
		}
		return &p.Author, claim, nil
	case KindBid:
		var b Bid
		err := strictjson.Decode(d.Subject.Object, &b)
		claim.Statement, claim.Published = nil, b.CreatedAt
		request := bidRequest{Bid: b}
		claim.Call = &integrity.Call{Operation: protocol.BidForAttention.Name, At: request.at, Differs: request.differs}
		return &b.Author, claim, err
	case KindProfile:
		var p Profile
		err := strictjson.Decode(d.Subject.Object, &p)
		return p.Author, claim, err
	}
	return nil, claim, nil
}

// A bidRequest is the request by which a bid was made.
type bidRequest struct {
	Bid
	board string // handle in the path of the operation's route
}

// at reports whether a path is that of bids on a board.
func (b *bidRequest) at(path string) bool {
	before, after, _ := strings.Cut(protocol.BidForAttention.HTTP.Path, "{handle}")
	rest, ok := strings.CutPrefix(path, before)
	handle, end := strings.CutSuffix(rest, after)
	handle, err := url.PathUnescape(handle)
	b.board = protocol.CleanHandle(handle)
	return ok && end && err == nil
}

// differs returns the member of the input of bid_for_attention that is not what is shown. The handle is not in the body of its route.
func (b *bidRequest) differs(input []byte) (string, error) {
	var in protocol.NewBid
	if err := strictjson.DecodeLoose(input, &in); err != nil {
		return "", err
	}
	for _, m := range []struct {
		name string
		same bool
	}{
		{"handle", cmp.Or(b.board, protocol.CleanHandle(in.Handle)) == b.Handle},
		{"amount", protocol.MoneyOf(protocol.Rupee, in.Paise()) == b.Amount},
		{"message", in.Message == b.Message},
		{"url", in.URL == b.URL},
		{"category", strings.EqualFold(in.Category, b.Category)},
		{"name", b.Author.Handle != nil || in.Name == "" || in.Name == b.Author.Given()},
	} {
		if !m.same {
			return m.name, nil
		}
	}
	return "", nil
}
