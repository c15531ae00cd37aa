package protocol

import "slices"

// ContactKinds is every kind, in the order of the specification.
var ContactKinds = []string{string(Question), string(QuoteRequest), string(Support)}

// Policy is the contact policy that the owner's draft makes: nobody may write
// where none was written; where no kinds are named, every kind is taken.
func (d ProfileDraft) Policy() ContactPolicy {
	p := ContactPolicy{Kinds: []string{}, AnonymousRequires: AnonymousRequires}
	if in := d.ContactPolicy; in != nil {
		p.OutsideAgentsWithIdentity, p.Anonymous, p.ResponseTime = in.OutsideAgentsWithIdentity, in.Anonymous, in.ResponseTime
		p.Kinds = append(p.Kinds, in.Kinds...)
		if len(p.Kinds) == 0 && (p.Anonymous || p.OutsideAgentsWithIdentity) {
			p.Kinds = slices.Clone(ContactKinds)
		}
	}
	return p
}
