package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// Reviews belong to an identity and its owner together: those from before the present owner got the token are
// a former owner's, and in no sum. Transfers are read with the reviews, in the order of the chain; an
// enrolment of another owner, which comes before its transfer was read, ends the earlier ones at once.

// A Holding says who has an identity, and since when.
type Holding struct {
	Owner   string    // address in lower case; "" when not known
	Since   int64     // place of the transfer to the owner; 0 when none was read
	SinceAt time.Time // its time
	Behind  bool      // not all events of the identity were read: nothing of it is shown
}

// Holding returns who has an identity, and locks its reviews; all is zero for one that is not read.
func (fs Feedbacks) Holding(ctx context.Context, agent string) (Holding, error) {
	return orZero(find[Holding](ctx, fs.tx, `SELECT owner, since, since_at, block IS NOT NULL AS behind FROM feedback_agent WHERE agent = ?`+
		fs.tx.db.engine.ForUpdate(), agent))
}

// Moved notes a final transfer of an identity: what was given before it is a former owner's. An enrolment that is
// older ends, if the poller has not ended it.
func (fs Feedbacks) Moved(ctx context.Context, agent, owner string, place int64, at time.Time) error {
	e, err := fs.tx.Enrolments().ByIdentity(ctx, agent)
	if err == nil && e.bound() && e.Owner != owner && place > FeedbackPlace(e.Block+1, 0) {
		err = fs.tx.Enrolments().End(ctx, "node", e, protocol.EndedByOwner)
	}
	if err = orNothing(err); err != nil {
		return err
	}
	h, err := fs.Holding(ctx, agent)
	if err != nil || place <= h.Since {
		return err
	}
	if _, err := fs.tx.write(ctx, `UPDATE feedback_agent SET owner = ?, since = ?, since_at = ? WHERE agent = ?`, owner, place, millis(at), agent); err != nil {
		return err
	}
	return fs.retire(ctx, agent, place)
}

// enrolled compares the owner of a new enrolment with that of the reviews. Those of another one end, also where
// the transfer was not read yet, and nothing is shown until all was read up to the block of the enrolment.
func (fs Feedbacks) enrolled(ctx context.Context, e Enrolment) error {
	h, err := fs.Holding(ctx, e.ERC8004)
	if err == nil { // what waited for a profile
		_, err = fs.tx.write(ctx, `UPDATE feedback SET next_at = ? WHERE agent = ? AND state = ? AND next_at IS NULL`,
			millis(fs.tx.Now), e.ERC8004, string(FeedbackWaiting))
	}
	if err != nil {
		return err
	}
	if h.Owner == e.Owner {
		return fs.show(ctx, e.ERC8004)
	}
	var upto int64
	err = fs.tx.row(ctx, `SELECT COALESCE(a.block, m.block, 0) FROM feedback_agent a LEFT JOIN feedback_mark m ON m.registry = a.registry
		WHERE a.agent = ?`, e.ERC8004).Scan(&upto)
	if err == ErrNotFound { // it is read from now on
		return nil
	}
	if err == nil {
		_, err = fs.tx.write(ctx, `UPDATE feedback_agent SET block = ? WHERE agent = ?`, upto, e.ERC8004)
	}
	if err == nil && e.bound() {
		// Everything that is stored was given before the transfer: it would have been read otherwise.
		since := FeedbackPlace(uint64(upto)+1, 0)
		if _, err = fs.tx.write(ctx, `UPDATE feedback_agent SET owner = ?, since = ?, since_at = ? WHERE agent = ?`,
			e.Owner, since, millis(fs.tx.Now), e.ERC8004); err == nil {
			err = fs.retire(ctx, e.ERC8004, since)
		}
	}
	if err != nil {
		return err
	}
	return fs.show(ctx, e.ERC8004)
}

const feedbackBefore = `agent = ? AND state = ? AND place < ?`

// retire takes the feedback before a place out of the sum: it is a former owner's.
func (fs Feedbacks) retire(ctx context.Context, agent string, place int64) error {
	type sum struct {
		Reason   protocol.ReviewReason
		N, Stars int64
	}
	counted := []any{agent, string(FeedbackCounted), place}
	sums, err := list[sum](ctx, fs.tx, `SELECT reason, count(*) AS n, sum(rating) AS stars FROM feedback WHERE `+feedbackBefore+` GROUP BY reason`, counted...)
	if err != nil {
		return err
	}
	if len(sums) > 0 {
		for _, text := range []string{
			`DELETE FROM feedback_proof WHERE feedback IN (SELECT id FROM feedback WHERE ` + feedbackBefore + `)`,
			`DELETE FROM review_buyer WHERE feedback IN (SELECT id FROM feedback WHERE ` + feedbackBefore + `)`,
			`UPDATE feed SET visible = FALSE WHERE subject_id IN (SELECT id FROM feedback WHERE ` + feedbackBefore + `)`,
		} {
			if _, err := fs.tx.write(ctx, text, counted...); err != nil {
				return fmt.Errorf("reviews of a former owner: %w", err)
			}
		}
	}
	for _, s := range sums {
		if err := fs.Add(ctx, agent, s.Reason, -s.N, -s.Stars); err != nil {
			return err
		}
	}
	// Judged before the transfer was read: counted, not yet, or as a receipt of another shop, which was the seller's.
	return fs.tx.exec(ctx, `UPDATE feedback SET state = ?, reason = ?, next_at = NULL WHERE agent = ? AND place < ? AND (state <> ? OR reason = ?)`,
		string(FeedbackUncounted), string(protocol.FormerOwner), agent, place, string(FeedbackUncounted), string(protocol.ReceiptShop))
}

// Unmoved forgets the transfers of a registry after a block, which the chain replaced: the identities are read
// again from their first review on.
func (fs Feedbacks) Unmoved(ctx context.Context, registry string, block uint64) error {
	agents, err := list[string](ctx, fs.tx, `SELECT agent FROM feedback_agent WHERE registry = ? AND since >= ?`, registry, FeedbackPlace(block+1, 0))
	for _, agent := range agents {
		if err == nil {
			_, err = fs.tx.write(ctx, `UPDATE feedback SET state = ?, next_at = at, tries = 0 WHERE agent = ? AND state = ? AND reason = ?`,
				string(FeedbackWaiting), agent, string(FeedbackUncounted), string(protocol.FormerOwner))
		}
		if err == nil {
			_, err = fs.tx.write(ctx, `UPDATE feedback_agent SET since = 0, since_at = 0, block = (SELECT COALESCE(min(f.block) - 1, ?) FROM feedback f
				WHERE f.agent = feedback_agent.agent) WHERE agent = ?`, int64(block), agent)
		}
		if err == nil {
			err = fs.show(ctx, agent)
		}
	}
	return err
}

// shownOf is a part of the sums of an identity and of a shop as a profile shows it: of an identity nothing until all its events were read.
func shownOf(part, agent, handle string) string {
	return `COALESCE((SELECT sum(s.` + part + `) FROM feedback_sum s JOIN feedback_agent a ON a.agent = s.agent AND a.block IS NULL WHERE s.agent IN (` +
		agent + `, '@' || ` + handle + `)), 0)`
}

// setShown sets the parts of a profile's reputation.
func setShown(agent, handle string) string {
	parts := make([]string, len(sumParts))
	for i, part := range sumParts {
		parts[i] = part + ` = ` + shownOf(part, agent, handle)
	}
	return strings.Join(parts, ", ")
}

// show brings the reputation of the profile that is enrolled to an identity, or is the shop, into step with its sums. The row is locked
// before they are read: another process may be changing the other sum.
func (fs Feedbacks) show(ctx context.Context, agent string) error {
	who := `erc8004 = ?`
	if handle, shop := strings.CutPrefix(agent, "@"); shop {
		who, agent = `handle = ?`, handle
	}
	if lock := fs.tx.db.engine.ForUpdate(); lock != "" {
		if _, err := fs.tx.exists(ctx, `SELECT 1 FROM profile WHERE `+who+lock, agent); err != nil {
			return err
		}
	}
	_, err := fs.tx.writeAside(ctx, `UPDATE profile SET `+setShown("profile.erc8004", "profile.handle")+` WHERE `+who, agent)
	return err
}

func feedbackNear(names int) string {
	return `SELECT 1 FROM review_buyer WHERE buyer IN (` + marks(names) + `) AND agent IN (?, ?) AND at > ? AND at < ? AND feedback <> ? LIMIT 1`
}

// Near reports whether other feedback of a buyer counts, on the identity or the shop, that was given less than [protocol.ReviewsApart]
// before or after.
func (fs Feedbacks) Near(ctx context.Context, agent, shop string, f Feedback) (bool, error) {
	if len(f.Doc.Buyers) == 0 {
		return false, nil
	}
	return fs.tx.exists(ctx, feedbackNear(len(f.Doc.Buyers)), append(toAny(f.Doc.Buyers), agent, ReviewsOf(shop),
		millis(f.At.Add(-protocol.ReviewsApart)), millis(f.At.Add(protocol.ReviewsApart)), f.ID)...)
}

func feedbackUsed(names int) string {
	return `SELECT count(*) FROM feedback_proof WHERE name IN (` + marks(names) + `) AND feedback <> ?`
}

var feedbackByProof = feedbackTable.from + `WHERE id = (SELECT feedback FROM feedback_proof WHERE name = ?)`

// Used reports whether other feedback has used up one of the names.
func (fs Feedbacks) Used(ctx context.Context, id string, names []string) (bool, error) {
	if len(names) == 0 {
		return false, nil
	}
	var n int
	err := fs.tx.row(ctx, feedbackUsed(len(names)), append(toAny(names), id)...).Scan(&n)
	return n > 0, err
}

// ByProof returns the counted feedback that used up a name; ErrNotFound when none did.
func (fs Feedbacks) ByProof(ctx context.Context, name string) (Feedback, error) {
	return find[Feedback](ctx, fs.tx, feedbackByProof, name)
}
