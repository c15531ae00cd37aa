package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"

	"stoa/node/door/web/words"
)

// packed are the texts among the assets, as make generate compresses them.
//
//go:embed static/*.gz
var packed embed.FS

func unpacked(name string) []byte {
	raw, err := packed.ReadFile("static/" + name + ".gz")
	if err != nil {
		panic(err) // it is a part of the program
	}
	return words.Unpack(raw)
}

var css = unpacked("stoa.css")

//go:embed static/stoa.svg
var svg []byte

//go:embed static/stoa.png
var png []byte

//go:embed static/maskable.png
var maskablePNG []byte

var proofJS = unpacked("proof.js")

var onceJS = unpacked("once.js")

var toolsJS = unpacked("tools.js")

var toolsJSON = unpacked("tools.json")

var payJS = unpacked("pay.js")

var clockJS = unpacked("clock.js")

var liveJS = unpacked("live.js")

var zoneJS = unpacked("zone.js")

var nearJS = unpacked("near.js")

var pushJS = unpacked("push.js")

var joinJS = unpacked("join.js")

var signInJS = unpacked("signin.js")

var walletJS = unpacked("wallet.js")

var uploadJS = unpacked("upload.js")

var solveJS = unpacked("solve.js")

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
	fmt.Fprintf(&b, "const tools = %s;\n", bytes.TrimSpace(toolsJSON))
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
