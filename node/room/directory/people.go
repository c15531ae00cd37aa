package directory

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// People lists the persons who chose to be listed (spec §2.15).
func (d *Directory) People(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.PeopleQuery) (protocol.List[protocol.PersonEntry], error) {
	found, err := tx.Profiles().ListPeople(ctx, in)
	page := entries(found.Page, func(f *storage.ListedProfile) protocol.PersonEntry {
		if f.Remote == nil {
			return d.person(&f.StoredProfile)
		}
		e := elsewhere(f.Remote).person(&f.StoredProfile)
		e.Elsewhere = f.Remote.Elsewhere(tx.Now)
		return e
	})
	return protocol.List[protocol.PersonEntry]{Page: page, Finding: found.Finding}, err
}

func (d *Directory) person(s *storage.StoredProfile) protocol.PersonEntry {
	in := s.Draft
	e := protocol.PersonEntry{
		Handle: in.Handle, Name: in.Name, Headline: in.Headline,
		Tags: list(in.Tags), Languages: list(in.Languages), Regions: list(in.Regions),
		HasAttentionBoard: s.Open().AttentionBoard, HasIdentity: s.ERC8004 != "", Page: d.page(in.Handle), Profile: d.address(in.Handle), Untrusted: true,
	}
	e.Alive, e.LastSeenAt = liveness(s)
	return e
}

// Where a profile is for people, and for programs (spec §2.4).

func (d *Directory) page(handle string) string    { return d.Base + "/@" + handle }
func (d *Directory) address(handle string) string { return d.Base + "/api/public/agents/" + handle }
