package web

import (
	"encoding/json"
	"net/http"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// The web app manifest (W3C), with which a phone puts the node on its home screen.

const (
	manifestPath  = "/manifest.webmanifest"
	manifestMedia = "application/manifest+json"
)

// The colours of the page behind everything, --paper of the stylesheet.
const lightPaper, darkPaper = "#f8f6f1", "#181613"

// installs are the elements of every page that lead to the manifest, and colour the browser around the page.
var installs = all{
	tag("meta", "name", "theme-color", "media", "(prefers-color-scheme: light)", "content", lightPaper),
	tag("meta", "name", "theme-color", "media", "(prefers-color-scheme: dark)", "content", darkPaper),
	tag("link", "rel", "apple-touch-icon", "href", maskable.path), tag("link", "rel", "manifest", "href", manifestPath),
}

type appManifest struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	ShortName  string        `json:"short_name"`
	Lang       string        `json:"lang"`
	StartURL   string        `json:"start_url"`
	Scope      string        `json:"scope"`
	Display    string        `json:"display"`
	Override   []string      `json:"display_override"`
	Theme      string        `json:"theme_color"`
	Background string        `json:"background_color"`
	Icons      []appIcon     `json:"icons"`
	Shortcuts  []appShortcut `json:"shortcuts,omitempty"`
}

type appIcon struct {
	Src     string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

type appShortcut struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// ManifestEntry is the manifest in the site map.
func ManifestEntry() protocol.SiteEntry {
	return protocol.SiteEntry{Path: manifestPath, Purpose: "Web app manifest, to put the node on a phone's home screen."}
}

// manifest serves the manifest in the reader's language. Systems that know minimal-ui show the buttons to go back and to load
// again; the others show the page alone.
func (s *Web) manifest(w http.ResponseWriter, r *http.Request) {
	vary(w.Header())
	ctx := r.Context()
	m := appManifest{
		ID: "/", Name: s.Name, ShortName: excerpt(protocol.OneLine(s.Name), 12), Lang: words.Of(ctx).Code, StartURL: "/", Scope: "/",
		Display: "standalone", Override: []string{"minimal-ui"}, Theme: lightPaper, Background: lightPaper,
		Icons: []appIcon{
			{icon.path, "any", icon.media, "any"}, {picture.path, "256x256", picture.media, "any"}, {maskable.path, "512x512", maskable.media, "maskable"},
		},
	}
	if s.Accounts != nil {
		m.Shortcuts = []appShortcut{{tr(ctx, "Your account"), "/account"}}
	}
	body, err := json.Marshal(m)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	validate(w, r, manifestMedia, "public, max-age=3600", body)
}
