package web

import (
	"net/url"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// ownForm is a form of the account page that writes something of a profile.
func ownForm(t *formTable, f *sent, at, handle string, shown url.Values, buttons ...templ.Component) templ.Component {
	in := []templ.Component{hidden("do", t.op.Name, "handle", handle), version(f, shown), t.fields(f, at, shown)}
	return posted("card form", at, "/account", append(in, buttons...)...)
}

// needForm edits a need; without an id it adds one.
func needForm(f *sent, handle string, n protocol.Need) templ.Component {
	return ownForm(needTable, f, formID("put_need", handle, n.ID), handle, needTable.stored(n.ID, n), sends("Save the need"))
}

func capabilityForm(f *sent, handle string, c protocol.Capability) templ.Component {
	return ownForm(capabilityTable, f, formID("put_capability", handle, c.ID), handle, capabilityTable.stored(c.ID, c), sends("Save the capability"))
}

func profileForm(f *sent, p protocol.OwnProfile) templ.Component {
	return ownForm(profileTable, f, formID("put_own_profile", p.Handle, ""), p.Handle, profileValues(p), profileButtons())
}
