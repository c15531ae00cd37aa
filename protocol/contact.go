package protocol

import "slices"

// ContactKinds is every kind, in the order of the specification.
var ContactKinds = []string{string(Question), string(QuoteRequest), string(Support)}

// NewPolicy is the contact policy of a new profile whose owner wrote none:
// everybody may write, of every kind.
func NewPolicy() *PolicyDraft {
	return &PolicyDraft{OutsideAgentsWithIdentity: true, Anonymous: true}
}

// Policy is the contact policy that the owner's draft makes. Where no kinds are
// named, every kind is taken. Nobody may write where no policy is stored: a
// profile from before new ones were given one ([NewPolicy]).
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
