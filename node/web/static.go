package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed static/stoa.css
var css []byte

//go:embed static/stoa.svg
var svg []byte

//go:embed static/proof.js
var proofJS []byte

//go:embed static/solve.js
var solveJS []byte

// An asset is an embedded file whose path contains its hash: it may be cached for a year, since
// other content has another path.
type asset struct {
	path, media string
	body        []byte
}

var (
	stylesheet = named("stoa.css", "text/css; charset=utf-8", css)
	icon       = named("stoa.svg", "image/svg+xml", svg)
	proofs     = named("proof.js", "text/javascript; charset=utf-8", proofJS)
	solver     = named("solve.js", "text/javascript; charset=utf-8", solveJS)
)

// assets are all of them.
var assets = []asset{stylesheet, icon, proofs, solver}

func named(name, media string, body []byte) asset {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return asset{"/static/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext, media, body}
}

func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	validate(w, r, a.media, "public, max-age=31536000, immutable", a.body)
}
