package archive

import (
	"context"
	"crypto"
	"encoding/json"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// askChain asks the chain, once, for the identity that the profile names.
func (im *importing) askChain(ctx context.Context) error {
	id, keyid := im.profile.ERC8004, im.profile.KeyID
	if id == "" || im.erc8004 != "" || im.refusal != "" {
		return nil
	}
	switch {
	case im.Chain == nil:
		im.refusal = "this node is not connected to a chain"
	case keyid == "" || im.provenKey(keyid) == nil && !im.operator():
		im.refusal = "the archive does not contain the private half of the key that is registered for it; the operator can enrol it"
	default:
		_, err := im.Authority(ctx, strings.ToLower(id), keyid)
		if err == nil {
			im.enrols, im.enrolsKey, err = im.Chain.Enrolment(ctx, strings.ToLower(id), keyid)
		}
		if err != nil && protocol.CodeOf(err).Temporary() {
			return err
		}
		if err != nil {
			im.refusal = protocol.AsError(err).Detail
			return nil
		}
		im.erc8004 = strings.ToLower(id)
	}
	return nil
}

// A grant is a question to the chain; an answer is the reply.
type grant struct{ id, keyid string }

type answer struct {
	integrity.Grant
	err error
}

// maxAsked is the number of keys that the chain is asked about for one archive.
const maxAsked = 64

// Authority implements integrity.Authority with the answers that were fetched before the
// transaction, because nothing dials inside one.
func (im *importing) Authority(ctx context.Context, id, keyid string) (integrity.Grant, error) {
	if _, account := httpsig.ParseAccount(keyid); account {
		return integrity.Grant{}, protocol.Errorf(protocol.KeyUnknown, "signatures of Ethereum accounts are not checked again in an archive")
	}
	g := grant{id, keyid}
	if found, ok := im.asked[g]; ok {
		return found.Grant, found.err
	}
	if !im.asking || im.Chain == nil || len(im.asked) >= maxAsked {
		return integrity.Grant{}, protocol.Errorf(protocol.KeyUnknown, "the chain was not asked about this key")
	}
	var found answer
	found.Grant, found.err = im.Chain.Authority(ctx, id, keyid)
	im.asked[g] = found
	return found.Grant, found.err
}

// A decision is what was decided about an archive before anything of it was stored. The chain and
// the other node are not asked again.
type decision struct {
	Operator bool              `json:"operator"` // OperatorLimits hold, otherwise OwnerLimits
	Signed   bool              `json:"signed"`
	Why      string            `json:"why,omitempty"`
	Gone     bool              `json:"gone,omitempty"`   // the operator vouches for the archive
	Proven   []json.RawMessage `json:"proven,omitempty"` // JWKs of the keys that the bearer has proved to own
	ERC8004  string            `json:"erc8004,omitempty"`
	Enrols   storage.Enrolment `json:"enrols,omitzero"`
	Key      json.RawMessage   `json:"key,omitempty"` // with Enrols
	Asked    []asked           `json:"asked,omitempty"`
	NodeKeys []json.RawMessage `json:"nodeKeys,omitempty"` // JWKs that verify receipts
}

// An asked is a question to the chain with its answer.
type asked struct {
	ID     string          `json:"id"`
	KeyID  string          `json:"keyid"`
	Key    json.RawMessage `json:"key,omitempty"`
	Block  uint64          `json:"block,omitempty"`
	Hash   string          `json:"hash,omitempty"`
	Owner  string          `json:"owner,omitempty"`
	Code   protocol.Code   `json:"code,omitempty"`
	Detail string          `json:"detail,omitempty"`
}

func publicJWK(pub crypto.PublicKey) (json.RawMessage, error) {
	return key.MarshalPublic(key.Public{Key: pub, Thumbprint: key.Thumbprint(pub), ID: key.Thumbprint(pub), Use: "sig"})
}

// encodeDecision returns the decision as JSON.
func (im *importing) encodeDecision() ([]byte, error) {
	r := decision{Operator: im.operator(), Signed: im.signed, Why: im.why, Gone: im.gone, ERC8004: im.erc8004, Enrols: im.enrols, Key: im.enrolsKey}
	for _, pub := range im.proven {
		jwk, err := publicJWK(pub)
		if err != nil {
			return nil, err
		}
		r.Proven = append(r.Proven, jwk)
	}
	for _, pub := range im.nodeKeys.Keys {
		jwk, err := key.MarshalPublic(pub)
		if err != nil {
			return nil, err
		}
		r.NodeKeys = append(r.NodeKeys, jwk)
	}
	for g, found := range im.asked {
		a := asked{ID: g.id, KeyID: g.keyid, Block: found.Block, Hash: found.BlockHash, Owner: found.Owner}
		if found.err != nil {
			e := protocol.AsError(found.err)
			a.Code, a.Detail = e.Code, e.Detail
		} else {
			var err error
			if a.Key, err = publicJWK(found.Key); err != nil {
				return nil, err
			}
		}
		r.Asked = append(r.Asked, a)
	}
	return json.Marshal(r)
}

// fromDecision restores an import from its stored decision.
func (a *Archive) fromDecision(row *storage.Import) (*importing, error) {
	var r decision
	if err := json.Unmarshal(row.Ruling, &r); err != nil {
		return nil, err
	}
	im := &importing{
		Archive: a, handle: row.Handle, signed: r.Signed, why: r.Why, gone: r.Gone, erc8004: r.ERC8004, enrols: r.Enrols, enrolsKey: r.Key,
		asked: map[grant]answer{}, proven: map[string]crypto.PublicKey{},
	}
	im.Limits = OwnerLimits
	if r.Operator {
		im.Limits = OperatorLimits
	}
	for _, raw := range r.Proven {
		p, err := key.ParsePublic(raw)
		if err != nil {
			return nil, err
		}
		im.proven[p.Thumbprint] = p.Key
	}
	for _, raw := range r.NodeKeys {
		p, err := key.ParsePublic(raw)
		if err != nil {
			return nil, err
		}
		im.nodeKeys.Keys = append(im.nodeKeys.Keys, p)
	}
	for _, q := range r.Asked {
		found := answer{Grant: integrity.Grant{Block: q.Block, BlockHash: q.Hash, Owner: q.Owner}}
		if q.Code != "" {
			found.err = protocol.Errorf(q.Code, "%s", q.Detail)
		} else {
			p, err := key.ParsePublic(q.Key)
			if err != nil {
				return nil, err
			}
			found.Key = p.Key
		}
		im.asked[grant{q.ID, q.KeyID}] = found
	}
	return im, nil
}
