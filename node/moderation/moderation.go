// Package moderation is the room of what keeps a node decent: reports and the
// queue they fill, hiding and restoring, blocks, limits, notes, and the logs of
// all that (spec §3, contract §4, §5). Five distinct reports hide a post; the
// rest is on an operator's word, and each word can be taken back but a deletion.
package moderation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// Moderation keeps one node's board decent.
type Moderation struct {
	Base     string              // public address of the node
	Defaults protocol.LimitsView // the limits of the configuration
	// Network is the keyed hash of an address's network.
	Network func(netip.Addr) string
	// Delete takes a post away for good, and tells other nodes.
	Delete func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostRef) (protocol.None, error)
	// Tell tells other servers that a post was hidden or restored.
	Tell func(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind string) error
	// Numbers are what Statistics gives.
	Numbers storage.Memo[protocol.Statistics]
}

// numbersAge is how old statistics are when they are counted anew.
const numbersAge = time.Minute

// CountNumbers makes Numbers ready.
func (m *Moderation) CountNumbers() *Moderation {
	m.Numbers.Age = numbersAge
	m.Numbers.Count = func(ctx context.Context, tx *storage.Tx, _ *protocol.Statistics) (protocol.Statistics, error) {
		return tx.Statistics(ctx)
	}
	return m
}

// byReports is why a post is hidden that no operator hid.
const byReports = "five distinct reports"

// Report notes one report. Distinct reporters are distinct verified identities
// or distinct client networks, each with its own solved proof of work; one that
// reports twice counts once. What is stored of a reporter cannot be linked to
// its reports of other posts.
func (m *Moderation) Report(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewReport) (protocol.ReportReceipt, error) {
	p, err := find(ctx, tx, in.ID)
	if err == nil {
		err = reportable(p)
	}
	if err != nil {
		return protocol.ReportReceipt{}, err
	}
	who, err := reporter(ctx, tx, in.ID, c)
	if err != nil {
		return protocol.ReportReceipt{}, err
	}
	fresh, distinct, err := tx.InsertReport(ctx, in.ID, who, in.Reason)
	if err != nil {
		return protocol.ReportReceipt{}, err
	}
	if fresh && p.Reports == 0 {
		if err := notify(ctx, tx, p, protocol.PostReported); err != nil {
			return protocol.ReportReceipt{}, err
		}
	}
	if fresh && distinct >= protocol.ReportsToHide {
		if err := m.hide(ctx, tx, p, byReports, byReports); err != nil {
			return protocol.ReportReceipt{}, err
		}
		if err := tx.AwaitReview(ctx, p.ID); err != nil { // hiding took it out of the queue, and no operator has looked
			return protocol.ReportReceipt{}, err
		}
	}
	return protocol.ReportReceipt{ID: in.ID, Accepted: fresh}, nil
}

func reportable(p *protocol.StoredPost) error {
	if p.State != protocol.Visible {
		return protocol.Errorf(protocol.Gone, "this post is no longer public")
	}
	return nil
}

// Ahead is for which public reason nobody may report the post.
func (m *Moderation) Ahead(ctx context.Context, tx *storage.Tx, in protocol.NewReport) error {
	p, err := tx.PostByID(ctx, in.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.Errorf(protocol.NotFound, "there is no post of that id")
	}
	if err != nil {
		return err
	}
	return reportable(p)
}

// ReportFrom notes a report that a trusted node hands on. A node counts as one
// reporter, however many of its readers reported.
func (m *Moderation) ReportFrom(ctx context.Context, tx *storage.Tx, postID, node, reason string) error {
	_, err := m.Report(ctx, tx, protocol.Caller{Standing: protocol.Federated, KeyID: "node " + node}, protocol.NewReport{ID: postID, Reason: reason})
	if code := protocol.CodeOf(err); code == protocol.NotFound || code == protocol.Gone {
		return nil
	}
	return err
}

// FlagFrom puts a report that another server sent into the queue. It hides
// nothing: servers are made as cheaply as names. One domain counts once a post.
func (m *Moderation) FlagFrom(ctx context.Context, tx *storage.Tx, postID, domain, reason string) error {
	_, err := tx.InsertFlag(ctx, storage.Report{PostID: postID, Reporter: reportID(postID, "domain "+domain), Reason: reason, Domain: domain})
	return err
}

// reporter is who reports, hashed together with the post. An owner is one,
// whether a token is shown or the key of a profile signs. A key that neither a
// profile nor the chain vouches for is made as cheaply as a name, so whoever
// shows such keys is the client network that they come from.
func reporter(ctx context.Context, tx *storage.Tx, postID string, c protocol.Caller) (string, error) {
	id := c.ID()
	if c.Standing == protocol.Signed && c.Agent == "" {
		owner, err := tx.AccountOf(ctx, c.Handle)
		switch {
		case err == nil:
			id = protocol.Caller{Account: owner.ID}.ID()
		case !errors.Is(err, storage.ErrNotFound):
			return "", err
		case c.Handle == "":
			id = protocol.Caller{Network: c.Network}.ID()
		}
	}
	return reportID(postID, id), nil
}

func reportID(postID, who string) string {
	sum := sha256.Sum256([]byte("report\x00" + postID + "\x00" + who))
	return hex.EncodeToString(sum[:16])
}

// hide hides, for a reason as the author and the operators read it and one as
// the public does. The hiding of a post of another node stays here: only the
// board that a post belongs to speaks about it to others.
func (m *Moderation) hide(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, why, public string) error {
	if err := tx.SetPostState(ctx, p.ID, protocol.Hidden, why); err != nil {
		return err
	}
	if err := tx.LogModeration(ctx, protocol.ActionHide, "post", p.ID, public); err != nil {
		return err
	}
	if err := notify(ctx, tx, p, protocol.PostHidden); err != nil {
		return err
	}
	return m.Tell(ctx, tx, p, "hide")
}

// notify tells the author's owner, where the author has a profile here.
func notify(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, event protocol.NoticeEvent) error {
	if p.Author.Handle == nil || p.Author.Node != nil {
		return nil
	}
	return tx.Notify(ctx, protocol.Notice{Handle: *p.Author.Handle, Event: event, Subject: p.ID, Title: p.Title})
}

func find(ctx context.Context, tx *storage.Tx, id string) (*protocol.StoredPost, error) {
	p, err := tx.PostToDecide(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.Errorf(protocol.NotFound, "there is no post of that id")
	}
	return p, err
}

// actor is the operator as the audit log names it.
func actor(c protocol.Caller) string {
	if c.Account != "" {
		return c.Account
	}
	return "operator"
}
