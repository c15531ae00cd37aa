package complaint

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// An appeal is a complaint about a decision that hid a post or a profile, by who wrote the post or owns the profile. The decision is the
// last line of the public moderation log about its subject, and each line is appealed once. Who is answered is the author, with the read
// token, by mail, and as the owner of a profile of this node by a notice.

// Appeals is what other rooms know of what is appealed against.
type Appeals struct {
	// Authored returns a post to its author.
	Authored func(context.Context, *storage.Tx, protocol.Caller, protocol.PostDeletion) (*protocol.StoredPost, error)
	// Restore shows a hidden post again, Lift a suspended profile.
	Restore func(context.Context, *storage.Tx, protocol.Caller, protocol.Decision) (protocol.PostStanding, error)
	Lift    func(context.Context, *storage.Tx, protocol.Caller, protocol.HandleInput) (protocol.None, error)
}

// A decision is what somebody appeals against.
type decision struct {
	id      string // of the line in the moderation log
	subject string // id of a post, or @ and a handle
	handle  string // of the profile of this node that it concerns, "" for none
	reason  string
}

var errNotHidden = protocol.Errorf(protocol.Conflict, "nobody has hidden that here, so there is nothing to appeal against")

// appealed returns the decision that an appeal is about. Forbidden when somebody else wrote the post, or owns the profile.
func (c *Complaints) appealed(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.NewComplaint) (decision, error) {
	subject := in.Subject[strings.LastIndexByte(in.Subject, '/')+1:] // an id, a handle, or the address of its page
	if protocol.IsID(protocol.PostID, subject) {
		ref := protocol.PostDeletion{PostRef: protocol.PostRef{ID: subject}, DeleteToken: in.DeleteToken}
		p, err := c.Authored(ctx, tx, by, ref)
		if err != nil {
			return decision{}, err
		}
		of := decision{subject: subject}
		if p.Node == nil && p.Author.Handle != nil {
			of.handle = *p.Author.Handle
		}
		return last(ctx, tx, of, "post", subject, p.State == protocol.Hidden)
	}
	handle := protocol.CleanHandle(subject)
	if !protocol.IsHandle(handle) {
		return decision{}, protocol.Invalid(protocol.Fault{Pointer: "/subject", Code: "invalid", Detail: "give the id of your post, or the handle of your profile"})
	}
	handle, err := by.ActsAs(handle)
	if err != nil {
		return decision{}, err
	}
	p, err := tx.Profiles().ForUpdate(ctx, handle)
	if err != nil {
		return decision{}, storage.IfMissing(err, protocol.NoAgent(handle))
	}
	return last(ctx, tx, decision{subject: "@" + handle, handle: handle}, string(protocol.BlockHandle), handle, p.State == protocol.ProfileSuspended)
}

// last completes a decision by the last line of the moderation log about its subject.
func last(ctx context.Context, tx *storage.Tx, of decision, kind, subject string, hidden bool) (decision, error) {
	d, err := tx.Moderation().Decided(ctx, kind, subject)
	switch {
	case !hidden, errors.Is(err, storage.ErrNotFound), err == nil && d.Action != protocol.ActionHide:
		return of, errNotHidden
	case err != nil:
		return of, err
	}
	of.id, of.reason = strconv.FormatInt(d.ID, 10), d.Reason
	return of, nil
}

// appellant reports whether a complaint is an appeal about a profile of the caller.
func appellant(by protocol.Caller, s *storage.StoredComplaint) bool {
	if s.Handle == "" || by.Standing == protocol.Operator {
		return false
	}
	_, err := by.ActsAs(s.Handle)
	return err == nil
}

// grant undoes the decision that an appeal is about, unless somebody has done that.
func (c *Complaints) grant(ctx context.Context, tx *storage.Tx, by protocol.Caller, s *storage.StoredComplaint) error {
	const reason = "an appeal was granted"
	if s.Kind != protocol.Appeal {
		return protocol.Invalid(protocol.Fault{Pointer: "/grant", Code: "invalid", Detail: "only an appeal can be granted"})
	}
	var err error
	if handle, ok := strings.CutPrefix(s.Subject, "@"); ok {
		var p *storage.StoredProfile
		if p, err = tx.Profiles().ForUpdate(ctx, handle); err == nil && p.State == protocol.ProfileSuspended {
			_, err = c.Lift(ctx, tx, by, protocol.HandleInput{Handle: handle})
		}
		return storage.IfMissing(err, protocol.NoAgent(handle))
	}
	p, err := tx.Posts().ForUpdate(ctx, s.Subject)
	if err == nil && p.State != protocol.Visible {
		_, err = c.Restore(ctx, tx, by, protocol.Decision{ID: s.Subject, Reason: reason})
	}
	return storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no post with that id"))
}

// tell sends a notice of the answer to the owner of the profile that an appeal is about.
func tell(ctx context.Context, tx *storage.Tx, s *storage.StoredComplaint) error {
	if s.Handle == "" || s.Answer == "" {
		return nil
	}
	switch _, err := tx.Profiles().Own(ctx, s.Handle); {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return tx.Notify(ctx, protocol.Notice{Handle: s.Handle, Event: protocol.AppealAnswered, Subject: s.ID, Title: protocol.OneLine(s.Answer)})
}
