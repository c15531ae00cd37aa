package ucpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// agentField reads UCP-Agent, a dictionary with the member profile (RFC 8941; UCP 2026-08-25,
// Platform Advertisement).
func agentField(lines []string) (profile string, sent bool, f *fault) {
	if len(lines) == 0 {
		return "", false, nil
	}
	bad := func(why string) (string, bool, *fault) {
		return "", true, discovery(http.StatusBadRequest, "invalid_profile_url",
			"UCP-Agent "+why+`; write it like profile="https://platform.example/.well-known/ucp"`)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return bad("is not a dictionary of RFC 8941")
	}
	member, ok := d.Get("profile")
	if !ok {
		return bad("has no member profile")
	}
	item, _ := member.(httpsfv.Item)
	if profile, ok = item.Value.(string); !ok {
		return bad("has a member profile that is no string")
	}
	return profile, true, nil
}

// negotiate determines release and version of the capability, and checks the signatures of the
// request. incompatible means that the platform has no version of the capability in common with the
// node: a business outcome.
func (x *exchange) negotiate(r *http.Request, profile string, sent bool, body []byte) (incompatible bool, err error) {
	if !sent {
		if x.c.Strict {
			return false, discovery(http.StatusBadRequest, "invalid_profile_url", `send the address of your profile: UCP-Agent: profile="https://…"`)
		}
		x.version, x.terms = protocol.UCPVersions[0], true
		x.chosen = x.version
		return false, nil
	}
	p, err := x.platforms.get(r.Context(), profile)
	if err != nil {
		return false, err
	}
	if !slices.Contains(protocol.UCPVersions, p.version) {
		return false, discovery(http.StatusUnprocessableEntity, "version_unsupported",
			"release "+p.version+" of UCP is not supported; this node supports "+strings.Join(protocol.UCPVersions, " and "))
	}
	if x.vouched, err = x.verify(r, p, body); err != nil {
		return false, err
	}
	x.version, x.platform = p.version, p
	chosen := common(protocol.UCPCapabilities(p.version), p.capabilities)
	x.chosen, x.terms = chosen[x.op.capability], chosen[protocol.UCPPaymentTerms] != ""
	return x.chosen == "", nil
}

// A capability is one that a platform's profile lists.
type capability struct {
	versions []string
	extends  []string // its parents; none for a root
}

// common computes the intersection (UCP 2026-08-25, Intersection Algorithm): the highest version that
// both sides have, without extensions that lost all their parents.
func common(ours map[string][]protocol.UCPEntity, theirs map[string]capability) map[string]string {
	chosen := map[string]string{}
	for name, entries := range ours {
		for _, e := range entries {
			if slices.Contains(theirs[name].versions, e.Version) {
				chosen[name] = max(chosen[name], e.Version)
			}
		}
	}
	for pruned := true; pruned; {
		pruned = false
		for name := range chosen {
			if parents := theirs[name].extends; len(parents) > 0 && !slices.ContainsFunc(parents, func(p string) bool { return chosen[p] != "" }) {
				delete(chosen, name)
				pruned = true
			}
		}
	}
	return chosen
}

const (
	maxCapabilities = 200
	maxVersions     = 20 // of one capability
)

// readPlatform reads a profile document. A platform's profile needs version, services and
// payment_handlers (UCP 2026-08-25, Profile Structure).
func readPlatform(raw []byte) (*platform, *fault) {
	bad := func(why string) (*platform, *fault) {
		return nil, discovery(http.StatusUnprocessableEntity, "profile_malformed", "the platform's profile "+why)
	}
	if err := strictjson.Check(raw, profileLimits); err != nil {
		return bad("cannot be read as JSON: " + err.Error())
	}
	members := strictjson.Members(raw)
	if members == nil {
		return bad("is not a JSON object")
	}
	o := newObject(members)
	meta := o.object("ucp")
	if meta == nil {
		return bad("has no object ucp")
	}
	p := &platform{version: meta.text("version", 10), capabilities: map[string]capability{}}
	for _, name := range []string{"services", "payment_handlers"} {
		if meta.object(name) == nil {
			return bad("has no object ucp." + name)
		}
	}
	if !isDate(p.version) {
		return bad("has no ucp.version in the form 2026-08-25")
	}
	list := meta.object("capabilities")
	if list != nil && len(list.members) > maxCapabilities {
		return bad("has too many capabilities")
	}
	if list != nil {
		for name := range list.members {
			var c capability
			for _, e := range list.objects(name, maxVersions) {
				version := e.text("version", 10)
				if !isDate(version) {
					return bad("has a capability without a version in the form 2026-08-25")
				}
				c.versions = append(c.versions, version)
				if name == protocol.UCPOrders && p.webhook == "" {
					p.webhook = e.object("config").text("webhook_url", maxProfileURL)
				}
				if raw, ok := e.get("extends"); ok && raw[0] == '"' {
					c.extends = append(c.extends, e.text("extends", 200))
				} else {
					c.extends = append(c.extends, e.texts("extends", maxVersions, 200)...)
				}
			}
			p.capabilities[name] = c
		}
	}
	for _, name := range []string{"keys", "signing_keys"} {
		p.keys = append(p.keys, readKeys(o, name)...)
	}
	if *o.fault != nil {
		return bad("breaks the schema: " + (*o.fault).text)
	}
	return p, nil
}

// isDate reports whether a version has the form of a date.
func isDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	return strings.Trim(s[:4]+s[5:7]+s[8:], "0123456789") == ""
}
