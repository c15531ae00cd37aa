package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
)

// A FeedbackState says what the node thinks of feedback on a chain.
type FeedbackState string

const (
	FeedbackWaiting   FeedbackState = "waiting"   // something has to be fetched or asked first
	FeedbackCounted   FeedbackState = "counted"   // it makes the reputation
	FeedbackUncounted FeedbackState = "uncounted" // it does not; the reason says why
)

// A Feedback is one review of a chain identity, as the chain and its file have it. Everything in it
// that is text was written by a stranger.
type Feedback struct {
	ID            string
	Agent, Client string // chain identity; address in lower case. Of a review that was given here, as ReviewsOf has them
	Index         uint64 `db:"idx"`
	Block         uint64
	Place         int64 // orders feedback as the chain does
	At            time.Time
	State         FeedbackState
	Reason        protocol.ReviewReason
	Rating        int64  // hundredths of a point, 0 to 10000
	Proof         string // what it names as proof: "order …" or "payment …"; "" for nothing or not known yet
	NextAt        *time.Time
	Tries         int
	FeedID        string
	HiddenAt      *time.Time // an operator hid its text then; HiddenWhy is the public reason
	HiddenWhy     string
	Doc           FeedbackDoc
}

// A FeedbackDoc is what no statement searches; its size is bounded by the room.
type FeedbackDoc struct {
	Value     string                  `json:"value"`
	Decimals  uint8                   `json:"decimals"`
	URI       string                  `json:"uri"`
	Hash      string                  `json:"hash"`
	Tx        string                  `json:"tx"`
	Place     uint64                  `json:"place"` // of the transaction in its block
	LogIndex  uint64                  `json:"log"`
	Source    int                     `json:"source"`
	Read      bool                    `json:"read,omitempty"` // the file was read; what follows is from it
	Text      string                  `json:"text,omitempty"`
	Receipt   string                  `json:"receipt,omitempty"`
	PaidTx    string                  `json:"paidTx,omitempty"`
	Order     *protocol.ReviewedOrder `json:"order,omitempty"`
	Payment   *protocol.ReviewPayment `json:"payment,omitempty"`
	Responses []protocol.ReviewReply  `json:"responses,omitempty"`
	Confirmed bool                    `json:"confirmed,omitempty"` // another endpoint has the event too
	Names     []string                `json:"names,omitempty"`     // orders and payments that it uses up
	PaidPlace int64                   `json:"paidPlace,omitempty"` // of the payment's transaction, see FeedbackPlace
	Buyers    []string                `json:"buyers,omitempty"`    // names of who gave it, see OrderReceipts
	Signed    string                  `json:"signed,omitempty"`    // the node's JWS of a review that was given here
	Buyer     string                  `json:"buyer,omitempty"`     // what everybody may know of its buyer
	Changes   int                     `json:"changes,omitempty"`
	GivenAt   int64                   `json:"givenAt,omitempty"` // seconds; At is that of its order's first review
}

// ReviewsOf is the Agent of the reviews of a shop that were given here. Their Client is the id of the order's receipt, and their Place is
// their time.
func ReviewsOf(handle string) string { return "@" + handle }

// Here reports whether a review was given here, and for which shop.
func (f Feedback) Here() (handle string, ok bool) { return strings.CutPrefix(f.Agent, "@") }

// FeedbackPlace orders events as the chain does.
func FeedbackPlace(block, logIndex uint64) int64 { return int64(block<<20 | min(logIndex, 1<<20-1)) }

var feedbackTable = tableOf[Feedback]("feedback")

// Feedbacks reads and writes feedback on chain identities.
type Feedbacks struct{ tx *Tx }

func (tx *Tx) Feedbacks() Feedbacks { return Feedbacks{tx} }

var feedbackGiven = feedbackTable.from + `WHERE agent = ? AND client = ? AND idx = ?`

// Given returns the feedback of a client with that index; ErrNotFound when there is none.
func (fs Feedbacks) Given(ctx context.Context, agent, client string, index uint64) (Feedback, error) {
	return find[Feedback](ctx, fs.tx, feedbackGiven, agent, client, int64(index))
}

// Insert stores feedback that waits or does not count. What is stored already stays, and added is false.
func (fs Feedbacks) Insert(ctx context.Context, f Feedback) (added bool, err error) {
	return feedbackTable.add(ctx, fs.tx, &f)
}

// Put stores what changes of feedback: its state and what was found out.
func (fs Feedbacks) Put(ctx context.Context, f Feedback) error {
	return feedbackTable.update(ctx, fs.tx, &f, "id", "state", "reason", "rating", "proof", "next_at", "tries", "feed_id", "doc")
}

// Claim uses up names of orders and payments for feedback, all or none: false when other feedback has
// one of them.
func (fs Feedbacks) Claim(ctx context.Context, id string, names []string) (bool, error) {
	for i, name := range names {
		n, err := fs.tx.write(ctx, `INSERT INTO feedback_proof (name, feedback) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, id)
		if err != nil {
			return false, err
		}
		if n == 0 {
			var of string
			if err := fs.tx.row(ctx, `SELECT feedback FROM feedback_proof WHERE name = ?`, name).Scan(&of); err != nil {
				return false, err
			}
			if of == id {
				continue
			}
			for _, mine := range names[:i] {
				if _, err := fs.tx.write(ctx, `DELETE FROM feedback_proof WHERE name = ? AND feedback = ?`, mine, id); err != nil {
					return false, err
				}
			}
			return false, nil
		}
	}
	return true, nil
}

// Release gives back what feedback had used up. Feedback that did not count because of it, of its shop, whose reviews are those of
// agents, is looked at again.
func (fs Feedbacks) Release(ctx context.Context, f Feedback, agents ...string) error {
	for _, text := range []string{`DELETE FROM feedback_proof WHERE feedback = ?`, `DELETE FROM review_buyer WHERE feedback = ?`} {
		if _, err := fs.tx.write(ctx, text, f.ID); err != nil {
			return err
		}
	}
	for _, agent := range agents {
		if _, err := fs.tx.write(ctx, `UPDATE feedback SET state = ?, next_at = ?, tries = 0 WHERE agent = ? AND state = ? AND reason = ? AND id <> ?
			AND at > ? AND at < ?`, string(FeedbackWaiting), millis(fs.tx.Now), agent, string(FeedbackUncounted), string(protocol.TooSoon), f.ID,
			millis(f.At.Add(-protocol.ReviewsApart)), millis(f.At.Add(protocol.ReviewsApart))); err != nil {
			return err
		}
	}
	if f.Proof == "" {
		return nil
	}
	return fs.Again(ctx, f.Proof, f.ID, protocol.ProofUsed)
}

// Again has other feedback that names an order or payment, and did not count for a reason, looked at again.
func (fs Feedbacks) Again(ctx context.Context, proof, except string, why protocol.ReviewReason) error {
	return fs.tx.exec(ctx, `UPDATE feedback SET state = ?, next_at = ?, tries = 0 WHERE proof = ? AND proof <> '' AND reason = ? AND id <> ?`,
		string(FeedbackWaiting), millis(fs.tx.Now), proof, string(why), except)
}

// Told notes by which names the buyer of counted feedback is told.
func (fs Feedbacks) Told(ctx context.Context, f Feedback) error {
	for _, name := range f.Doc.Buyers {
		if err := fs.tx.exec(ctx, `INSERT INTO review_buyer (buyer, agent, at, feedback) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			name, f.Agent, millis(f.At), f.ID); err != nil {
			return err
		}
	}
	return nil
}

// Add changes the sum of an identity or a shop, and the reputation of its profile, by reviews that count for a reason. The caller has locked
// the reviews (Holding).
func (fs Feedbacks) Add(ctx context.Context, agent string, why protocol.ReviewReason, reviews, stars int64) error {
	args := []any{agent, reviews, stars, 0, 0, 0, 0}
	switch why {
	case protocol.ByProvider:
		args[3], args[4] = reviews, stars
	case protocol.ByConfirmed:
		args[5], args[6] = reviews, stars
	}
	var sums []string
	for _, part := range sumParts {
		sums = append(sums, part+` = feedback_sum.`+part+` + excluded.`+part)
	}
	if _, err := fs.tx.write(ctx, `INSERT INTO feedback_sum (agent, `+strings.Join(sumParts, ", ")+`) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (agent) DO UPDATE SET `+strings.Join(sums, ", "), args...); err != nil {
		return err
	}
	return fs.show(ctx, agent)
}

// sumParts are the columns of sums, in feedback_sum and in profile.
var sumParts = []string{"reviews", "stars", "provider_reviews", "provider_stars", "confirmed_reviews", "confirmed_stars"}

// drop deletes the reviews of a shop that were given here.
func (fs Feedbacks) drop(ctx context.Context, handle string) error {
	of := ReviewsOf(handle)
	for _, text := range []string{
		`DELETE FROM feedback_proof WHERE feedback IN (SELECT id FROM feedback WHERE agent = ?)`,
		`DELETE FROM review_buyer WHERE feedback IN (SELECT id FROM feedback WHERE agent = ?)`,
		`DELETE FROM feedback WHERE agent = ?`, `DELETE FROM feedback_sum WHERE agent = ?`, `DELETE FROM feedback_agent WHERE agent = ?`,
	} {
		if _, err := fs.tx.write(ctx, text, of); err != nil {
			return err
		}
	}
	return nil
}

// Sum returns how many reviews of an identity count, and the sum of their ratings.
func (fs Feedbacks) Sum(ctx context.Context, agent string) (reviews, stars int64, err error) {
	err = fs.tx.row(ctx, `SELECT reviews, stars FROM feedback_sum WHERE agent = ?`, agent).Scan(&reviews, &stars)
	return reviews, stars, orNothing(err)
}

var feedbackDue = feedbackTable.from + `WHERE next_at IS NOT NULL AND next_at <= ? ORDER BY next_at LIMIT ?`

// Due returns feedback that something can be done for, the longest waiting first.
func (fs Feedbacks) Due(ctx context.Context, limit int) ([]Feedback, error) {
	return list[Feedback](ctx, fs.tx, feedbackDue, millis(fs.tx.Now), limit)
}

const feedbackLastDue = `SELECT next_at FROM feedback WHERE agent = ? AND next_at IS NOT NULL ORDER BY next_at DESC LIMIT 1`

// LastDue returns when the last of an identity's waiting feedback is due; zero for none.
func (fs Feedbacks) LastDue(ctx context.Context, agent string) (time.Time, error) {
	return orZero(find[time.Time](ctx, fs.tx, feedbackLastDue, agent))
}

// Trim deletes the oldest feedback of an identity that does not count, beyond the newest that do not
// count, and beyond the newest that wait: most of each.
func (fs Feedbacks) Trim(ctx context.Context, agent string, most int) error {
	for _, state := range []FeedbackState{FeedbackUncounted, FeedbackWaiting} {
		// What names an order or a payment and waits has counted, or is decided at once.
		if _, err := fs.tx.write(ctx, `DELETE FROM feedback WHERE agent = ? AND state = ? AND NOT (state = 'waiting' AND proof <> '') AND place <= (
			SELECT place FROM feedback WHERE agent = ? AND state = ? ORDER BY place DESC LIMIT 1 OFFSET ?)`,
			agent, string(state), agent, string(state), most); err != nil {
			return err
		}
	}
	return nil
}

// feedbackList lists by ids: those have the time of what they name.
var (
	feedbackOf   = feedbackTable.from + `WHERE agent = ? AND state = ? AND id < ? ORDER BY id DESC LIMIT ?`
	feedbackList = `SELECT * FROM (SELECT * FROM (` + feedbackOf + `) a UNION ALL SELECT * FROM (` + feedbackOf + `) b) r ORDER BY id DESC LIMIT ?`
)

// List returns feedback in one state on an identity, "" for none, and on the shop that has it now, newest first.
func (fs Feedbacks) List(ctx context.Context, agent, shop string, state FeedbackState, limit int, after string) (protocol.Page[Feedback], error) {
	limit = bounded(limit)
	listing := "reviews-" + string(state)
	before, err := positionID(listing, after)
	if err != nil {
		return protocol.Page[Feedback]{}, err
	}
	part := []any{string(state), before, limit + 1}
	args := append(append([]any{agent}, part...), append([]any{ReviewsOf(shop)}, part...)...)
	found, err := list[Feedback](ctx, fs.tx, feedbackList, append(args, limit+1)...)
	return page(found, limit, listing, func(f Feedback) string { return f.ID }), err
}

// maxTold is of how many reviews the nodes that follow this one are told when they are shown or hidden at once.
const maxTold = 1000

// Show shows or hides the feed items about the reviews of an identity that were told of a profile while it
// was enrolled to that identity, also at the nodes that follow this one.
func (fs Feedbacks) Show(ctx context.Context, agent, handle string, visible bool) error {
	if err := fs.tx.settleFeed(); err != nil {
		return err
	}
	rows, err := fs.tx.query(ctx, `SELECT id, COALESCE(`+fs.actorOf("actor")+`, '') FROM feed WHERE `+fs.told()+` ORDER BY seq DESC LIMIT ?`,
		agent, string(FeedbackCounted), !visible, handle, maxTold)
	type told struct{ id, actor string }
	items, err := collect(rows, err, func(s scanner) (t told, err error) { return t, s.Scan(&t.id, &t.actor) })
	if err != nil {
		return err
	}
	if _, err := fs.showAll(ctx, agent, handle, visible); err != nil {
		return err
	}
	for _, t := range items {
		base, _, known := strings.Cut(t.actor, "/ap/")
		if !known {
			continue
		}
		if err := fs.tx.Logs().Append(ctx, protocol.BoardID(base), shownKind(visible), t.id, nil); err != nil {
			return err
		}
	}
	return nil
}

// showAll is Show for this node alone, and returns how many items changed.
func (fs Feedbacks) showAll(ctx context.Context, agent, handle string, visible bool) (int64, error) {
	return fs.tx.write(ctx, `UPDATE feed SET visible = ? WHERE `+fs.told(), visible, agent, string(FeedbackCounted), !visible, handle)
}

// told selects the items about the reviews of an identity in a state that are visible or not, and of a profile.
func (fs Feedbacks) told() string {
	return `subject_id IN (SELECT id FROM feedback WHERE agent = ? AND state = ?) AND visible = ? AND ` + fs.actorOf("handle") + ` = ?`
}

// actorOf is a member of the actor of an item.
func (fs Feedbacks) actorOf(member string) string { // a deleted item has no document
	if fs.tx.db.engine == enginePostgres {
		return `NULLIF(doc, '')::json #>> '{actor,` + member + `}'`
	}
	return `NULLIF(doc, '') ->> '$.actor.` + member + `'`
}

var (
	feedbackByID   = feedbackTable.from + `WHERE id = ?`
	feedbackHidden = feedbackTable.from + `WHERE hidden_at IS NOT NULL AND id < ? ORDER BY id DESC LIMIT ?`
)

// ByID returns feedback; ErrNotFound when there is none.
func (fs Feedbacks) ByID(ctx context.Context, id string) (Feedback, error) {
	return find[Feedback](ctx, fs.tx, feedbackByID, id)
}

// Hide stores whether the text of feedback is hidden: since when and why, nil and "" for not.
func (fs Feedbacks) Hide(ctx context.Context, id string, at *time.Time, why string) error {
	return one(fs.tx.write(ctx, `UPDATE feedback SET hidden_at = ?, hidden_why = ? WHERE id = ?`, millisPtr(at), why, id))
}

// ListHidden returns feedback whose text is hidden, the newest review first.
func (fs Feedbacks) ListHidden(ctx context.Context, limit int, after string) (protocol.Page[Feedback], error) {
	return newest[Feedback](ctx, fs.tx, "reviews-hidden", "id", limit, after, feedbackHidden)
}

// feedbackAfter reads the newest blocks, not all of a registry: a range of agents would need an index of theirs.
var feedbackAfter = feedbackTable.from + `WHERE block > ? AND agent || '' > ? AND agent || '' < ? ORDER BY block LIMIT 1000`

// DropAfter deletes feedback on the identities of a registry in the blocks after one, which the chain
// replaced, at most a thousand a call, and returns what it deleted.
func (fs Feedbacks) DropAfter(ctx context.Context, registry string, block uint64) ([]Feedback, error) {
	found, err := list[Feedback](ctx, fs.tx, feedbackAfter, int64(block), registry+":", registry+";")
	for _, f := range found {
		if err == nil {
			_, err = fs.tx.write(ctx, `DELETE FROM feedback WHERE id = ?`, f.ID)
		}
	}
	return found, err
}
