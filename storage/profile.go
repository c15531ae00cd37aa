package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// A StoredProfile is the owner's draft of a profile, and what the node found out
// about its identity.
type StoredProfile struct {
	Draft                protocol.ProfileDraft
	ERC8004              string // chain identity, lower case; "" none
	KeyHash              string // thumbprint shown in identity; "" none
	IdentityNote         string
	Links                protocol.AgentLinks   // of the chain identity; only AgentDocuments changes them
	Unlisted             bool                  // readable by handle, but in no list or search
	State                protocol.ProfileState // "" shown; else its owner and the operators see it alone. SetState changes it
	StateAt              time.Time             // when it got that state
	StateReason          string                // in the words of who decided, "" for none
	Alive                protocol.Liveness     // "" counts as unknown
	LastSeenAt           time.Time             // when it last answered; zero: never
	Attention            bool                  // its attention board is open, or will be next to a new one; later only AttentionBoards.Put changes it
	Catalog              bool                  // a business with an item on sale; only Items changes it
	Meetings             bool                  // it takes meeting requests: what Draft.Agent says where there is one, and Meetings.PutSettings
	Picture              *Picture              // nil for none; only Pictures changes it
	Rated                                      // the reviews that count, see Feedbacks.Add
	CreatedAt, UpdatedAt time.Time
}

// Rated is how many reviews count, and the sum of their ratings in hundredths of a point: all of them, those of orders whose payment the
// provider reported, and those whose payment buyer and shop confirmed.
type Rated struct {
	Reviews, Stars                   int64
	ProviderReviews, ProviderStars   int64
	ConfirmedReviews, ConfirmedStars int64
}

// Open are the rooms that the profile has open, for profile, card, lists, pages and
// index.
func (p *StoredProfile) Open() protocol.Rooms {
	person := p.Draft.Kind == protocol.Person
	return protocol.Rooms{AttentionBoard: p.Attention && person, Meetings: p.Meetings && person, Catalog: p.Catalog && !person}
}

// Shown reports whether lists show the profile, and news tell of it.
func (p *StoredProfile) Shown() bool { return !p.Unlisted && p.State == "" }

type profileRow struct {
	Seq                  int64 `db:",auto"`
	Handle, Draft        string
	ERC8004, KeyHash     string `db:",null"` // "" none
	IdentityNote         string
	IdentityLinks        string // of ERC8004, as AgentDocuments stores them
	Listed, Attention    bool   // Listed: Wish, and the profile is shown
	Meetings, Catalog    bool
	Wish                 bool // its owner lists it
	State, StateReason   string
	StateAt              int64
	Alive                string
	LastSeenAt, JoinedAt int64
	Pos                  int64 `db:",null"` // of its version in profile_rank; 0 none
	Picture              string
	Rated
	CreatedAt, UpdatedAt int64
}

func (r *profileRow) profile() (*StoredProfile, error) {
	p := &StoredProfile{ERC8004: r.ERC8004, KeyHash: r.KeyHash, IdentityNote: r.IdentityNote,
		Unlisted: !r.Wish, Attention: r.Attention, Meetings: r.Meetings, Catalog: r.Catalog,
		State: protocol.ProfileState(r.State), StateAt: moment(r.StateAt), StateReason: r.StateReason,
		Alive: protocol.Liveness(r.Alive), LastSeenAt: moment(r.LastSeenAt),
		Picture: pictureOf(r.Picture), Rated: r.Rated,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt)}
	if err := json.Unmarshal([]byte(r.Draft), &p.Draft); err != nil {
		return nil, fmt.Errorf("profile %s: %w", r.Handle, err)
	}
	var err error
	if p.Links, err = linksOf(r.IdentityLinks); err != nil {
		return nil, fmt.Errorf("profile %s: %w", r.Handle, err)
	}
	if p.Draft.Agent != nil {
		p.Draft.Agent.AcceptingMeetingRequests = r.Meetings
	}
	return p, nil
}

// Profiles reads and writes profiles, and the index in which they are found.
type Profiles struct{ tx *Tx }

func (tx *Tx) Profiles() Profiles { return Profiles{tx} }

// Put stores a profile under the handle of its draft, replacing the previous one,
// and sets the times and the liveness of p: the owner's changes do not affect
// liveness. Unlisted decides whether lists show it; the draft's field is ignored.
// ErrExists when another profile has the same chain identity.
func (ps Profiles) Put(ctx context.Context, p *StoredProfile) (created bool, err error) {
	return ps.put(ctx, p, ps.tx.Now)
}

func (ps Profiles) put(ctx context.Context, p *StoredProfile, written time.Time) (created bool, err error) {
	if err := ps.tx.dirty(); err != nil {
		return false, err
	}
	p.Draft.Listed = nil
	raw, err := json.Marshal(p.Draft)
	if err != nil {
		return false, fmt.Errorf("encode profile: %w", err)
	}
	if p.ERC8004 != "" {
		other, err := ps.where(ctx, "erc8004 = ?", p.ERC8004)
		if err == nil && other.Handle != p.Draft.Handle {
			return false, ErrExists
		}
		if err != nil && err != ErrNotFound {
			return false, err
		}
	}
	r, err := ps.lock(ctx, p.Draft.Handle)
	var m *StoredMerchant
	switch {
	case err == ErrNotFound:
		created = true
		r = &profileRow{Handle: p.Draft.Handle, Alive: string(protocol.LivenessUnknown), CreatedAt: millis(ps.tx.Now),
			State: string(p.State), StateReason: p.StateReason,
			Attention: p.Attention && p.CreatedAt.IsZero()} // not that of one that was read before it was deleted
		if r.State != "" {
			r.StateAt = millis(ps.tx.Now)
		}
		if err = ps.tx.Threads().freeHandle(ctx, r.Handle); err == nil {
			err = ps.tx.Handles().take(ctx, r.Handle)
		}
	case err == nil:
		m, err = ps.tx.Merchants().of(ctx, r.Seq)
	}
	if err != nil {
		return false, err
	}
	r.Draft, r.ERC8004, r.KeyHash, r.IdentityNote = string(raw), p.ERC8004, p.KeyHash, p.IdentityNote
	r.Wish, r.UpdatedAt = !p.Unlisted, millis(written)
	if a := p.Draft.Agent; a != nil {
		r.Meetings = a.AcceptingMeetingRequests
	}
	return created, ps.store(ctx, r, p, m, created)
}

// store writes the row of a profile, and what follows from it: its place in lists, that of its board, what the node tells of it, and what is asked
// whether it answers.
func (ps Profiles) store(ctx context.Context, r *profileRow, p *StoredProfile, m *StoredMerchant, created bool) error {
	r.Listed = r.Wish && r.State == ""
	if err := ps.save(ctx, r); err != nil {
		return err
	}
	p.CreatedAt, p.UpdatedAt = moment(r.CreatedAt), moment(r.UpdatedAt)
	p.Alive, p.LastSeenAt, p.Attention = protocol.Liveness(r.Alive), moment(r.LastSeenAt), r.Attention
	p.Meetings, p.Catalog = r.Meetings, r.Catalog
	p.State, p.StateAt, p.StateReason = protocol.ProfileState(r.State), moment(r.StateAt), r.StateReason
	if r.Attention && !created {
		if err := ps.tx.AttentionBoards().relist(ctx, r.Handle, r.Listed && p.Open().AttentionBoard); err != nil {
			return err
		}
	}
	if m != nil {
		if err := ps.tx.Merchants().moveHours(ctx, r.Seq, p, m); err != nil {
			return err
		}
	}
	if err := ps.rerank(ctx, r, p, m); err != nil {
		return err
	}
	if err := ps.EnqueueTold(ctx, r.Handle); err != nil {
		return err
	}
	return ps.tx.Probes().put(ctx, p.Draft.Handle, FromProfile, profileProbes(p))
}

// save inserts a row without a number, setting it, or writes what an owner
// changes in one that has a number. ErrExists when handle or identity is taken.
func (ps Profiles) save(ctx context.Context, r *profileRow) (err error) {
	if r.Seq != 0 {
		_, err = ps.tx.write(ctx, `UPDATE profile SET draft = ?, erc8004 = NULLIF(?, ''), key_hash = NULLIF(?, ''), identity_note = ?,
			identity_links = CASE WHEN erc8004 = ? THEN identity_links ELSE '' END,
			listed = ?, wish = ?, state = ?, state_at = ?, state_reason = ?,
			meetings = ?, updated_at = ? WHERE seq = ?`,
			r.Draft, r.ERC8004, r.KeyHash, r.IdentityNote, r.ERC8004, r.Listed, r.Wish,
			r.State, r.StateAt, r.StateReason, r.Meetings, r.UpdatedAt, r.Seq)
		if err == nil {
			_, err = ps.tx.writeAside(ctx, `UPDATE profile SET `+setShown("profile.erc8004", "profile.handle")+` WHERE seq = ?`, r.Seq)
		}
	} else if err = ps.tx.dirty(); err == nil {
		var text string
		var args []any
		if text, args, err = profileTable.statement(r, " RETURNING seq"); err == nil {
			r.Seq, err = find[int64](ctx, ps.tx, text, args...)
		}
	}
	if commit.Conflicts(err) {
		return ErrExists
	}
	if err != nil {
		return fmt.Errorf("store profile: %w", err)
	}
	return nil
}

var profileTable = tableOf[profileRow]("profile")

// placedOf are the profiles of rows with their places.
func placedOf(rows []profileRow, err error) ([]PlacedProfile, error) {
	all := make([]PlacedProfile, len(rows))
	for i := range rows {
		var p *StoredProfile
		if err == nil {
			p, err = rows[i].profile()
		}
		if err != nil {
			return nil, err
		}
		all[i] = PlacedProfile{rows[i].Pos, *p}
	}
	return all, err
}

func (ps Profiles) where(ctx context.Context, where string, args ...any) (*profileRow, error) {
	r, err := findIn[profileRow](ps.tx.lookup(ctx, profileTable.from+`WHERE `+where, args...))
	return &r, err
}

// lock is where for a handle, with a lock on the row.
func (ps Profiles) lock(ctx context.Context, handle string) (*profileRow, error) {
	if err := ps.tx.dirty(); err != nil {
		return nil, err
	}
	return ps.where(ctx, "handle = ?"+ps.tx.db.engine.ForUpdate(), handle)
}

// ForUpdate is Own for a caller that writes the profile back: in a writing
// transaction the row is locked, so that no concurrent change is lost.
func (ps Profiles) ForUpdate(ctx context.Context, handle string) (*StoredProfile, error) {
	if !ps.tx.writes() {
		return ps.Own(ctx, handle)
	}
	r, err := ps.lock(ctx, handle)
	if err != nil {
		return nil, err
	}
	return r.profile()
}

// ByHandle returns a profile that is shown, as everybody sees it; ErrNotFound when there is none.
func (ps Profiles) ByHandle(ctx context.Context, handle string) (*StoredProfile, error) {
	return ps.read(ctx, "handle = ? AND state = ''", handle)
}

// Own is ByHandle for its owner and the operators, who also see a profile that is not shown.
func (ps Profiles) Own(ctx context.Context, handle string) (*StoredProfile, error) {
	return ps.read(ctx, "handle = ?", handle)
}

func (ps Profiles) read(ctx context.Context, where string, args ...any) (*StoredProfile, error) {
	r, err := ps.where(ctx, where, args...)
	if err != nil {
		return nil, err
	}
	return r.profile()
}

// SetLiveness stores whether an agent is alive; at is when it was last seen. An
// earlier or zero time leaves the stored one. ErrNotFound when there is no such
// profile.
func (ps Profiles) SetLiveness(ctx context.Context, handle string, alive protocol.Liveness, at time.Time) error {
	if err := one(ps.tx.writeAside(ctx, `UPDATE profile SET last_seen_at = CASE WHEN last_seen_at < ? THEN ? ELSE last_seen_at END WHERE handle = ?`,
		millis(at), millis(at), handle)); err != nil {
		return err
	}
	r, err := ps.lock(ctx, handle)
	if err != nil || r.Alive == string(alive) {
		return err
	}
	r.Alive = string(alive)
	p, err := r.profile()
	if err != nil {
		return err
	}
	m, err := ps.tx.Merchants().of(ctx, r.Seq)
	if err != nil {
		return err
	}
	if _, err := ps.tx.writeAside(ctx, `UPDATE profile SET alive = ? WHERE seq = ?`, r.Alive, r.Seq); err != nil {
		return err
	}
	return ps.rerank(ctx, r, p, m)
}

// Delete removes a profile with its keys, tokens, settings, threads and merchant
// record; ErrNotFound when there is none. A job deletes threads that are too many for
// one transaction; until then the handle cannot be taken.
func (ps Profiles) Delete(ctx context.Context, handle string) error {
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	r, err := ps.lock(ctx, handle)
	if err != nil {
		return err
	}
	if err := ps.tx.Tills().drop(ctx, handle); err != nil {
		return err
	}
	if err := ps.tx.Feedbacks().drop(ctx, handle); err != nil {
		return err
	}
	if err := ps.tx.AttentionBoards().drop(ctx, handle); err != nil {
		return err
	}
	if err := ps.tx.Meetings().mayDrop(ctx, handle); err != nil {
		return err
	}
	if r.Pos != 0 {
		clock, err := ps.advanceClock(ctx)
		if err != nil {
			return err
		}
		if err := ps.closeVersion(ctx, r.Pos, clock); err != nil {
			return err
		}
		if err := ps.recount(ctx, r.Seq, ""); err != nil {
			return err
		}
	}
	if err := ps.tx.Merchants().drop(ctx, r.Seq); err != nil {
		return err
	}
	for _, table := range ofProfile {
		if _, err := ps.tx.write(ctx, `DELETE FROM `+table+` WHERE handle = ?`, handle); err != nil {
			return err
		}
	}
	for _, text := range []string{
		`DELETE FROM leaving WHERE subject = ?`,
		`INSERT INTO archive_post (handle, seq) SELECT '', seq FROM archive_post WHERE handle = ? ON CONFLICT DO NOTHING`,
		`DELETE FROM archive_post WHERE handle = ?`,
		`DELETE FROM archive_import WHERE handle = ? AND state = 'running'`, // first, so that the import writes nothing more
	} {
		if _, err := ps.tx.write(ctx, text, handle); err != nil {
			return err
		}
	}
	if err := ps.tx.Probes().drop(ctx, handle); err != nil {
		return err
	}
	if _, err = ps.tx.write(ctx, `DELETE FROM profile WHERE seq = ?`, r.Seq); err != nil {
		return err
	}
	if err := ps.tx.Handles().leave(ctx, handle); err != nil {
		return err
	}
	return ps.tx.Threads().DropAll(ctx, handle)
}

// HandlesFrom returns handles of listed profiles that begin with a prefix, in order.
func (ps Profiles) HandlesFrom(ctx context.Context, prefix string, limit int) ([]string, error) {
	const after = "{" // the next character after those that handles have
	return list[string](ctx, ps.tx, `SELECT handle FROM profile WHERE listed AND handle >= ? AND handle < ? ORDER BY handle LIMIT ?`, prefix, prefix+after, limit)
}

// Count is how many profiles there are.
func (ps Profiles) Count(ctx context.Context) (int, error) {
	return find[int](ctx, ps.tx, `SELECT count(*) FROM profile`)
}
