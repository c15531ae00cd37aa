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

func profileButtons() templ.Component {
	return inside(`div class="send"`, submits("Save the profile"), sayIn(`button class="quiet" type="submit" name="preview" value="true"`, "Preview"))
}

// profilePreview shows the profile of a form as others would read it.
func profilePreview(f *sent) templ.Component {
	return inside(`section class="card" aria-labelledby="preview"`, heading("preview", "Preview: nothing is saved yet"),
		inside(`div class="said"`, in(`h3 lang="" dir="auto"`, f.values.Get("name")),
			when(f.values.Get("headline") != "", in(`p class="headline" lang="" dir="auto"`, f.values.Get("headline"))),
			userText(f.values.Get("description")), tags("/agents", tidyList("tags", f.values.Get("tags")))))
}
