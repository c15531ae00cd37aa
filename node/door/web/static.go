package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"

	"stoa/node/door/web/words"
)

//go:embed static/stoa.css
var css []byte

//go:embed static/stoa.svg
var svg []byte

//go:embed static/stoa.png
var png []byte

//go:embed static/maskable.png
var maskablePNG []byte

//go:embed static/proof.js
var proofJS []byte

//go:embed static/once.js
var onceJS []byte

//go:embed static/tools.js
var toolsJS []byte

//go:embed static/tools.json.gz
var toolsJSON []byte

//go:embed static/pay.js
var payJS []byte

//go:embed static/clock.js
var clockJS []byte

//go:embed static/live.js
var liveJS []byte

//go:embed static/zone.js
var zoneJS []byte

//go:embed static/near.js
var nearJS []byte

//go:embed static/push.js
var pushJS []byte

//go:embed static/join.js
var joinJS []byte

//go:embed static/signin.js
var signInJS []byte

//go:embed static/wallet.js
var walletJS []byte

//go:embed static/upload.js
var uploadJS []byte

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
	picture    = named("stoa.png", "image/png", png)
	maskable   = named("maskable.png", "image/png", maskablePNG) // 512 by 512 pixels, the drawing within the middle 80 %
	script     = named("page.js", "text/javascript; charset=utf-8", pageScript())
	payHelp    = named("pay.js", "text/javascript; charset=utf-8", payJS)
	clock      = named("clock.js", "text/javascript; charset=utf-8", clockJS)
	liveHelp   = named("live.js", "text/javascript; charset=utf-8", liveJS)
	zoneHelp   = named("zone.js", "text/javascript; charset=utf-8", zoneJS)
	nearHelp   = named("near.js", "text/javascript; charset=utf-8", nearJS)
	pushHelp   = named("push.js", "text/javascript; charset=utf-8", pushJS)
	joinHelp   = named("join.js", "text/javascript; charset=utf-8", joinJS)
	signInHelp = named("signin.js", "text/javascript; charset=utf-8", signInJS)
	walletHelp = named("wallet.js", "text/javascript; charset=utf-8", walletJS)
	uploadHelp = named("upload.js", "text/javascript; charset=utf-8", uploadJS)
	solver     = named("solve.js", "text/javascript; charset=utf-8", solveJS)
)

// PicturePath is the path of the icon as a PNG of 256 by 256 pixels: servers of the fediverse take no SVG for an actor.
func PicturePath() string { return picture.path }

// assets are all of them.
var assets = []asset{stylesheet, icon, picture, maskable, script, payHelp, clock, liveHelp, zoneHelp, nearHelp, pushHelp, joinHelp,
	signInHelp, walletHelp, uploadHelp, solver}

// pageScript returns the script of every page, one file: the parts share functions, and a page may
// make one policy of trusted types.
func pageScript() []byte {
	var b bytes.Buffer
	b.WriteString("(() => {\n\"use strict\";\nconst here = document.currentScript.dataset;\n")
	b.Write(onceJS)
	b.Write(proofJS)
	fmt.Fprintf(&b, "const tools = %s;\n", bytes.TrimSpace(words.Unpack(toolsJSON)))
	b.Write(toolsJS)
	b.WriteString("})();\n")
	return b.Bytes()
}

func named(name, media string, body []byte) asset {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return asset{"/static/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext, media, body}
}

func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	validate(w, r, a.media, "public, max-age=31536000, immutable", a.body)
}
