package protocol

import "slices"

// ContactKinds is every kind, in the order of the specification.
var ContactKinds = []string{string(Question), string(QuoteRequest), string(Support)}

// NewPolicy returns the contact policy of a new profile whose owner gave none: everyone may write,
// with every kind.
func NewPolicy() *PolicyDraft {
	return &PolicyDraft{OutsideAgentsWithIdentity: true, Anonymous: true}
}

// Policy returns the contact policy of the owner's draft. Without kinds, every kind is accepted.
// Without a stored policy nobody may write: the profile is older than [NewPolicy].
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
