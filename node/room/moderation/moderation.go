// Package moderation contains reports and the queue that they fill, hiding and restoring, blocks,
// limits, notes, and the logs of all of these (spec §3, contract §4, §5). Five distinct reports
// hide a post. Everything else is decided by an operator, and every decision except a deletion can
// be reverted.
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

// Moderation moderates the board of one node.
type Moderation struct {
	Base     string              // public address of the node
	Defaults protocol.LimitsView // the limits of the configuration
	// Network returns the keyed hash of an address's network.
	Network func(netip.Addr) string
	// Delete deletes a post for good and announces that to other nodes.
	Delete func(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PostRef) (protocol.None, error)
	// Distribute announces to other servers that a post was hidden or restored.
	Distribute func(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind storage.LogKind) error
	// SetState hides or shows a profile.
	SetState func(ctx context.Context, tx *storage.Tx, handle string, state protocol.ProfileState, reason string) error
	// Numbers holds the last result of Statistics.
	Numbers storage.Memo[protocol.Statistics]
}

// numbersAge is the age at which statistics are counted again.
const numbersAge = time.Minute

// byReports is the reason of a post that was hidden by reports.
const byReports = "five distinct reports"

// Report stores one report. Distinct reporters are distinct verified identities or distinct client
// networks, each with its own solved proof of work; a second report by the same reporter does not
// count. What is stored about a reporter cannot be linked to its reports of other posts.
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
	fresh, distinct, err := tx.Moderation().InsertReport(ctx, in.ID, who, in.Reason)
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
		if err := tx.Moderation().AwaitReview(ctx, p.ID); err != nil { // hiding removed it from the queue, but no operator has decided yet
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

// Ahead returns the public reason why nobody may report the post, nil otherwise.
func (m *Moderation) Ahead(ctx context.Context, tx *storage.Tx, in protocol.NewReport) error {
	p, err := tx.Posts().ByID(ctx, in.ID)
	if err != nil {
		return storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no post with that id"))
	}
	return reportable(p)
}

// ReportFrom stores a report that a trusted node forwards. A node counts as one reporter, however
// many of its readers reported.
func (m *Moderation) ReportFrom(ctx context.Context, tx *storage.Tx, postID, node, reason string) error {
	_, err := m.Report(ctx, tx, protocol.Caller{Standing: protocol.Federated, KeyID: "node " + node}, protocol.NewReport{ID: postID, Reason: reason})
	if code := protocol.CodeOf(err); code == protocol.NotFound || code == protocol.Gone {
		return nil
	}
	return err
}

// FlagFrom adds a report from another server to the queue. It never hides a post, since anyone can
// set up a server. One domain counts once per post.
func (m *Moderation) FlagFrom(ctx context.Context, tx *storage.Tx, postID, domain, reason string) error {
	_, err := tx.Moderation().InsertFlag(ctx, storage.Report{PostID: postID, Reporter: reportID(postID, "domain "+domain), Reason: reason, Domain: domain})
	return err
}

// reporter returns the hash of the reporter and the post. An owner is one reporter, whether it
// shows a token or signs with the key of a profile. Anyone can make a key, so a signature with a
// key that neither a profile nor the chain vouches for counts as the client network.
func reporter(ctx context.Context, tx *storage.Tx, postID string, c protocol.Caller) (string, error) {
	id := c.ID()
	if c.Standing == protocol.Signed && c.Agent == "" {
		owner, err := tx.Accounts().OfProfile(ctx, c.Handle)
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

// hide hides a post. why is the reason for the author and the operators, public the one for
// everyone. Hiding a post of another node has no effect elsewhere: only the board that a post
// belongs to announces it to others.
func (m *Moderation) hide(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, why, public string) error {
	if err := tx.Posts().SetState(ctx, p.ID, protocol.Hidden, why); err != nil {
		return err
	}
	if err := tx.Moderation().Log(ctx, protocol.ActionHide, "post", p.ID, public); err != nil {
		return err
	}
	if err := notify(ctx, tx, p, protocol.PostHidden); err != nil {
		return err
	}
	return m.Distribute(ctx, tx, p, storage.LogHide)
}

// notify sends a notice to the author's owner, if the author has a profile here.
func notify(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, event protocol.NoticeEvent) error {
	if p.Author.Handle == nil || p.Author.Node != nil {
		return nil
	}
	return tx.Notify(ctx, protocol.Notice{Handle: *p.Author.Handle, Event: event, Subject: p.ID, Title: p.Title})
}

func find(ctx context.Context, tx *storage.Tx, id string) (*protocol.StoredPost, error) {
	p, err := tx.Posts().ForUpdate(ctx, id)
	return p, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no post with that id"))
}

// actor returns the operator's name in the audit log.
func actor(c protocol.Caller) string {
	if c.Account != "" {
		return c.Account
	}
	return "operator"
}
