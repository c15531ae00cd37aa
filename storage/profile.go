package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"stoa/protocol"

	"github.com/uptrace/bun"
)

// A StoredProfile is what its owner wrote of a profile, and what the node found
// out about its identity.
type StoredProfile struct {
	Draft                protocol.ProfileDraft
	ERC8004              string // chain identity, lower case; "" none
	KeyHash              string // thumbprint shown in identity; "" none
	IdentityNote         string
	Unlisted             bool              // readable by handle, and in no list and search
	Alive                protocol.Liveness // "" counts as unknown
	LastSeenAt           time.Time         // when it last answered; zero: never
	CreatedAt, UpdatedAt time.Time
}

type profileRow struct {
	bun.BaseModel `bun:"table:profile"`
	Seq           int64  `bun:",pk,autoincrement"`
	Handle        string `bun:",notnull"`
	Draft         string `bun:",notnull"`
	ERC8004       string `bun:"erc8004,nullzero"`
	KeyHash       string `bun:",nullzero"`
	IdentityNote  string
	Listed        bool
	Alive         string
	LastSeenAt    int64
	CreatedAt     int64
	UpdatedAt     int64
}

func (r *profileRow) profile() (*StoredProfile, error) {
	p := &StoredProfile{ERC8004: r.ERC8004, KeyHash: r.KeyHash, IdentityNote: r.IdentityNote,
		Unlisted: !r.Listed, Alive: protocol.Liveness(r.Alive), LastSeenAt: moment(r.LastSeenAt),
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt)}
	if err := json.Unmarshal([]byte(r.Draft), &p.Draft); err != nil {
		return nil, fmt.Errorf("profile %s: %w", r.Handle, err)
	}
	return p, nil
}

// PutProfile stores a profile under the handle of its draft, in place of the one
// that is there, and sets the times and the liveness of p: what the owner writes
// changes nothing of whether the agent answers. ErrExists when another profile has
// the same chain identity.
func (tx *Tx) PutProfile(ctx context.Context, p *StoredProfile) (created bool, err error) {
	if err := tx.dirty(); err != nil {
		return false, err
	}
	raw, err := json.Marshal(p.Draft)
	if err != nil {
		return false, fmt.Errorf("encode profile: %w", err)
	}
	if p.ERC8004 != "" {
		other, err := tx.profileWhere(ctx, "erc8004 = ?", p.ERC8004)
		if err == nil && other.Handle != p.Draft.Handle {
			return false, ErrExists
		}
		if err != nil && err != ErrNotFound {
			return false, err
		}
	}
	old, err := tx.profileWhere(ctx, "handle = ?", p.Draft.Handle)
	if err != nil && err != ErrNotFound {
		return false, err
	}
	r := profileRow{Handle: p.Draft.Handle, Draft: string(raw), ERC8004: p.ERC8004, KeyHash: p.KeyHash,
		IdentityNote: p.IdentityNote, Listed: !p.Unlisted, Alive: string(protocol.LivenessUnknown), CreatedAt: millis(tx.Now), UpdatedAt: millis(tx.Now)}
	if created = err == ErrNotFound; created {
		err = tx.insertProfile(ctx, &r)
	} else {
		r.Seq, r.CreatedAt, r.Alive, r.LastSeenAt = old.Seq, old.CreatedAt, old.Alive, old.LastSeenAt
		err = tx.replaceProfile(ctx, old, &r)
	}
	if err != nil {
		return false, err
	}
	p.CreatedAt, p.UpdatedAt = moment(r.CreatedAt), tx.Now
	p.Alive, p.LastSeenAt = protocol.Liveness(r.Alive), moment(r.LastSeenAt)
	return created, profileWords.add(ctx, tx, r.Seq, profileText(p))
}

func (tx *Tx) insertProfile(ctx context.Context, r *profileRow) error {
	_, err := tx.conn.bun.NewInsert().Model(r).Returning("seq").Exec(tx.in(ctx))
	if conflicts(err) {
		return ErrExists
	}
	return err
}

func (tx *Tx) replaceProfile(ctx context.Context, old, r *profileRow) error {
	was, err := old.profile()
	if err != nil {
		return err
	}
	if err := profileWords.drop(ctx, tx, old.Seq, profileText(was)); err != nil {
		return err
	}
	_, err = tx.conn.bun.NewUpdate().Model(r).WherePK().Exec(tx.in(ctx))
	if conflicts(err) {
		return ErrExists
	}
	return err
}

func (tx *Tx) profileWhere(ctx context.Context, where string, args ...any) (*profileRow, error) {
	var r profileRow
	err := tx.row(ctx, `SELECT seq, handle, draft, COALESCE(erc8004, ''), COALESCE(key_hash, ''), identity_note, listed, alive, last_seen_at, created_at, updated_at
		FROM profile WHERE `+where, args...).
		Scan(&r.Seq, &r.Handle, &r.Draft, &r.ERC8004, &r.KeyHash, &r.IdentityNote, &r.Listed, &r.Alive, &r.LastSeenAt, &r.CreatedAt, &r.UpdatedAt)
	return &r, err
}

// ProfileByHandle returns a profile; ErrNotFound when there is none.
func (tx *Tx) ProfileByHandle(ctx context.Context, handle string) (*StoredProfile, error) {
	r, err := tx.profileWhere(ctx, "handle = ?", handle)
	if err != nil {
		return nil, err
	}
	return r.profile()
}

// ProfileByAgent returns the profile of a chain identity (lower case);
// ErrNotFound when there is none.
func (tx *Tx) ProfileByAgent(ctx context.Context, erc8004 string) (*StoredProfile, error) {
	r, err := tx.profileWhere(ctx, "erc8004 = ?", erc8004)
	if err != nil {
		return nil, err
	}
	return r.profile()
}

// SetLiveness keeps whether an agent answers; at is when it was last seen to.
// An earlier or zero time leaves the one that is there. ErrNotFound when there
// is no such profile.
func (tx *Tx) SetLiveness(ctx context.Context, handle string, alive protocol.Liveness, at time.Time) error {
	return one(tx.write(ctx, `UPDATE profile SET alive = ?, last_seen_at = CASE WHEN last_seen_at < ? THEN ? ELSE last_seen_at END WHERE handle = ?`,
		string(alive), millis(at), millis(at), handle))
}

// DeleteProfile removes a profile with its keys, tokens, settings and threads;
// ErrNotFound when there is none.
func (tx *Tx) DeleteProfile(ctx context.Context, handle string) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	r, err := tx.profileWhere(ctx, "handle = ?", handle)
	if err != nil {
		return err
	}
	p, err := r.profile()
	if err != nil {
		return err
	}
	if err := profileWords.drop(ctx, tx, r.Seq, profileText(p)); err != nil {
		return err
	}
	for _, text := range []string{
		`DELETE FROM agent_key WHERE handle = ?`, `DELETE FROM account_profile WHERE handle = ?`,
		`DELETE FROM notify WHERE handle = ?`, `DELETE FROM api_token WHERE handle = ?`,
	} {
		if _, err := tx.write(ctx, text, handle); err != nil {
			return err
		}
	}
	if err := tx.DropThreads(ctx, handle); err != nil {
		return err
	}
	_, err = tx.write(ctx, `DELETE FROM profile WHERE seq = ?`, r.Seq)
	return err
}

// ListProfiles returns profiles, the newest first. All filters combine; a q
// without any word finds nothing.
func (tx *Tx) ListProfiles(ctx context.Context, q protocol.AgentQuery) (protocol.Page[StoredProfile], error) {
	limit := bounded(q.Limit)
	before, err := position(listProfiles, q.After, math.MaxInt64)
	if err != nil {
		return protocol.Page[StoredProfile]{}, err
	}
	words := queryWords(q.Q)
	if q.Q != "" && len(words) == 0 {
		return protocol.Page[StoredProfile]{Items: []StoredProfile{}}, nil
	}
	words = append(words, profileFacets(q)...)
	var seqs []int64
	if len(words) > 0 {
		seqs, err = profileWords.find(ctx, tx, words, before, limit+1)
	} else {
		rows, e := tx.query(ctx, `SELECT seq FROM profile WHERE seq < ? ORDER BY seq DESC LIMIT ?`, before, limit+1)
		seqs, err = collect(rows, e, scanInt)
	}
	if err != nil {
		return protocol.Page[StoredProfile]{}, err
	}
	p := page(seqs, limit, listProfiles, number)
	out := protocol.Page[StoredProfile]{Items: make([]StoredProfile, 0, len(p.Items)), Next: p.Next}
	if len(p.Items) == 0 {
		return out, nil
	}
	var found []profileRow
	if err := tx.selectFrom(&found).Where("seq IN (?)", bun.List(p.Items)).Order("seq DESC").Scan(tx.in(ctx)); err != nil {
		return out, err
	}
	for i := range found {
		profile, err := found[i].profile()
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, *profile)
	}
	return out, nil
}

func profileFacets(q protocol.AgentQuery) []string {
	var facets []string
	add := func(name, value string) {
		if value != "" {
			facets = append(facets, facet(name, value))
		}
	}
	add(facetKind, string(q.Kind))
	add(facetCapability, q.Capability)
	add(facetTag, q.Tag)
	add(facetRegion, q.Region)
	if q.HasIdentity != nil {
		if *q.HasIdentity {
			facets = append(facets, facetIdentity)
		} else {
			facets = append(facets, facetNobody)
		}
	}
	return facets
}

// profileText is what full text knows of a profile: the words of its name,
// headline, description, capabilities and needs, and a facet for each filter of
// the directory.
func profileText(p *StoredProfile) string {
	d := &p.Draft
	b := fold(fold(fold(fold(nil, d.Handle), d.Name), d.Headline), d.Description)
	b = addFacet(b, facetKind, string(d.Kind))
	for _, tag := range d.Tags {
		b = addFacet(b, facetTag, tag)
	}
	for _, c := range d.Capabilities {
		b = fold(fold(b, c.Name), c.Description)
		b = addFacet(b, facetCapability, c.ID)
		for _, tag := range c.Tags {
			b = addFacet(b, facetCapability, tag)
		}
	}
	for _, n := range d.Needs {
		b = fold(b, n.Description)
	}
	for _, r := range d.Regions {
		country, _, divided := strings.Cut(r, "-")
		b = addFacet(b, facetRegion, r)
		if divided {
			b = addFacet(b, facetRegion, country)
		}
	}
	if p.ERC8004 != "" {
		return string(addFacet(b, facetIdentity, ""))
	}
	return string(addFacet(b, facetNobody, ""))
}

// CountProfiles is how many profiles there are.
func (tx *Tx) CountProfiles(ctx context.Context) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM profile`).Scan(&n)
	return n, err
}
