package complaint

import (
	"context"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// whole is a complaint as operators read it.
func whole(tx *storage.Tx, s *storage.StoredComplaint) protocol.OperatorComplaint {
	out := protocol.OperatorComplaint{Complaint: view(s), Overdue: s.State != protocol.ComplaintResolved && !s.DueAt.After(tx.Now),
		Reason: s.Reason}
	if s.Known {
		out.By = s.Complainant
	}
	return out
}

// List lists complaints for operators.
func (c *Complaints) List(
	ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ComplaintQuery,
) (protocol.Page[protocol.OperatorComplaint], error) {
	var found protocol.Page[storage.StoredComplaint]
	var err error
	switch in.State {
	case "resolved":
		found, err = tx.Complaints().Resolved(ctx, in.Size(), in.After)
	case "overdue":
		found, err = tx.Complaints().Due(ctx, tx.Now, in.Size(), in.After)
	default:
		found, err = tx.Complaints().Due(ctx, tx.Now.Add(10*c.Resolve+365*24*time.Hour), in.Size(), in.After)
	}
	out := protocol.Page[protocol.OperatorComplaint]{Items: make([]protocol.OperatorComplaint, 0, len(found.Items)), Next: found.Next}
	for i := range found.Items {
		out.Items = append(out.Items, whole(tx, &found.Items[i]))
	}
	return out, err
}

// Answer acknowledges a complaint, or answers and ends it. What was said before is replaced.
func (c *Complaints) Answer(ctx context.Context, tx *storage.Tx, by protocol.Caller, in protocol.ComplaintAnswer) (protocol.OperatorComplaint, error) {
	if err := tx.Complaints().Lock(ctx); err != nil {
		return protocol.OperatorComplaint{}, err
	}
	s, err := tx.Complaints().ByID(ctx, in.ID)
	if err == nil && s.State == protocol.ComplaintResolved {
		err = protocol.Errorf(protocol.Conflict, "the complaint is resolved already")
	}
	if err != nil {
		return protocol.OperatorComplaint{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no complaint with that id"))
	}
	if s.AcknowledgedAt == nil {
		s.AcknowledgedAt = new(tx.Now)
	}
	if in.Grant {
		if err := c.grant(ctx, tx, by, s); err != nil {
			return protocol.OperatorComplaint{}, err
		}
	}
	if s.State, s.DueAt = protocol.ComplaintAcknowledged, s.ResolveBy; in.Done || in.Grant {
		s.State, s.ResolvedAt, s.Until = protocol.ComplaintResolved, new(tx.Now), tx.Now.Add(c.Kept)
	}
	if in.Answer != "" {
		s.Answer = in.Answer
	}
	if err := tx.Complaints().Update(ctx, s); err != nil {
		return protocol.OperatorComplaint{}, err
	}
	if s.Confirmed {
		if err := c.write(ctx, tx, letter{ID: s.ID, What: tells, State: s.State}, tx.Now); err != nil {
			return protocol.OperatorComplaint{}, err
		}
	}
	if err := tell(ctx, tx, s); err != nil {
		return protocol.OperatorComplaint{}, err
	}
	return whole(tx, s), tx.Audit(ctx, by.Actor(), "complaint "+string(s.State), s.ID, "")
}
