package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
)

// LogAgent begins the object of a log entry with the summary of a profile; its handle follows.
const LogAgent = "agent/"

const (
	toldAfter = time.Second     // a change is told so soon,
	toldPause = 5 * time.Minute // and the next one not earlier
)

// EnqueueTold has a profile told, once it is listed to the nodes that follow this one, and in any case to its followers, unless that
// is to be done already.
func (ps Profiles) EnqueueTold(ctx context.Context, handle string) error {
	var at int64
	err := ps.tx.row(ctx, `SELECT at FROM agent_told WHERE handle = ?`, handle).Scan(&at)
	if orNothing(err) != nil {
		return err
	}
	run := ps.tx.Now.Add(toldAfter)
	if next := moment(at).Add(toldPause); err == nil && next.After(run) {
		run = next
	}
	return ps.tellAt(ctx, handle, run)
}

func (ps Profiles) tellAt(ctx context.Context, handle string, run time.Time) error {
	return ps.tx.Enqueue(ctx, Job{Kind: AgentToldJob, Lane: "tell " + handle, Dedupe: toldName(handle), Args: []byte(handle), RunAt: run})
}

func toldName(handle string) string { return string(AgentToldJob) + " " + handle }

// TellFollowers puts the change of a profile into the log that the followers of its actor read, in place of an earlier one, unless
// they were told of the same: digest is that of what they are shown. Within 5 minutes of the earlier one it does so later.
func (ps Profiles) TellFollowers(ctx context.Context, actor, handle, digest string) error {
	var before []byte
	var at int64
	err := ps.tx.row(ctx, agentTold, LogAgent+handle, actor).Scan(&before, &at)
	if orNothing(err) != nil || string(before) == digest {
		return orNothing(err)
	}
	if next := moment(at).Add(toldPause); err == nil && next.After(ps.tx.Now) {
		return ps.tellAt(ctx, handle, next)
	}
	if err := ps.tx.Logs().Redact(ctx, actor, LogAgent+handle); err != nil {
		return err
	}
	return ps.tx.Logs().Append(ctx, actor, LogUpdate, LogAgent+handle, []byte(digest))
}

// Summary returns what other nodes list a profile by, without its attention board; ErrNotFound for one that is not listed.
func (ps Profiles) Summary(ctx context.Context, handle string) (*protocol.AgentSummary, *StoredProfile, error) {
	p, m, err := ps.tx.Merchants().ByHandle(ctx, handle)
	if err != nil || !p.Shown() {
		if err == nil {
			err = ErrNotFound
		}
		return nil, nil, err
	}
	open := p.Open()
	s := &protocol.AgentSummary{Profile: p.Draft, Meetings: open.Meetings, Catalog: open.Catalog, Updated: p.UpdatedAt}
	if m == nil || p.Draft.Kind != protocol.Business {
		return s, p, nil
	}
	if m.UpdatedAt.After(s.Updated) {
		s.Updated = m.UpdatedAt
	}
	s.Shop, err = ps.shopSummary(ctx, handle, m)
	return s, p, err
}

func (ps Profiles) shopSummary(ctx context.Context, handle string, m *StoredMerchant) (*protocol.ShopSummary, error) {
	s := &protocol.ShopSummary{Record: m.Draft, Items: m.ItemCount}
	s.Record.Items = nil
	seq, catalog, err := ps.tx.Items().catalogOf(ctx, handle)
	if err != nil {
		return nil, err
	}
	words, err := ps.tx.Items().storedWords(ctx, seq)
	if err != nil {
		return nil, err
	}
	for w := range strings.FieldsSeq(words) {
		if len(s.Words)+len(w) >= protocol.MaxSummaryWords {
			break
		}
		if !strings.ContainsFunc(w, private) {
			s.Words += w + " "
		}
	}
	s.Words = strings.TrimSpace(s.Words)
	rows, err := ps.tx.query(ctx, shopPrices, seq, catalog, catalog)
	s.Prices, err = collect(rows, err, func(r scanner) (p protocol.PriceSpan, err error) { return p, r.Scan(&p.Currency, &p.Low, &p.High) })
	return s, err
}

const shopPrices = `SELECT p.currency, min(p.minor), max(p.minor) FROM item_price p JOIN item i ON i.pos = p.pos
	WHERE p.seq = ? AND i.since <= ? AND i.until > ? GROUP BY p.currency LIMIT 3`

// Tell puts the summary of a profile into the log of board, in place of an earlier one; told is the activity. It is false when
// the log has a summary with that digest.
func (ps Profiles) Tell(ctx context.Context, board, handle, digest string, told func() ([]byte, error)) (bool, error) {
	var before string
	err := ps.tx.row(ctx, `SELECT digest FROM agent_told WHERE handle = ?`, handle).Scan(&before)
	if orNothing(err) != nil || before == digest {
		return false, orNothing(err)
	}
	activity, err := told()
	if err != nil {
		return false, err
	}
	if _, err := ps.tx.write(ctx, `INSERT INTO agent_told (handle, digest, at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET digest = EXCLUDED.digest, at = EXCLUDED.at`, handle, digest, millis(ps.tx.Now)); err != nil {
		return false, err
	}
	if err := ps.tx.Logs().Redact(ctx, board, LogAgent+handle); err != nil {
		return false, err
	}
	return true, ps.tx.Logs().Append(ctx, board, LogUpdate, LogAgent+handle, activity)
}

const agentTold = `SELECT activity, at FROM log WHERE object_id = ? AND stream = (SELECT id FROM stream WHERE board = ?) AND NOT redacted
	AND activity IS NOT NULL ORDER BY seq DESC LIMIT 1`

// Told returns the activity that Tell put into the log of board; ErrNotFound when there is none.
func (ps Profiles) Told(ctx context.Context, board, handle string) (activity []byte, err error) {
	var at int64
	err = ps.tx.row(ctx, agentTold, LogAgent+handle, board).Scan(&activity, &at)
	return activity, err
}

// Untell takes the summary of a profile that is not listed any more out of the log of board. It is false when there was none.
func (ps Profiles) Untell(ctx context.Context, board, handle string) (bool, error) {
	n, err := ps.tx.write(ctx, `DELETE FROM agent_told WHERE handle = ?`, handle)
	if err != nil || n == 0 {
		return false, err
	}
	// What waited for the pause after the last telling waits no more: a profile that is listed again is told at once.
	if _, err := ps.tx.Jobs().DropNamed(ctx, AgentToldJob, toldName(handle)); err != nil {
		return false, err
	}
	if err := ps.EnqueueTold(ctx, handle); err != nil {
		return false, err
	}
	return true, ps.tx.Logs().Redact(ctx, board, LogAgent+handle)
}
