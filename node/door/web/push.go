package web

import (
	_ "embed"
	"encoding/json"
	"net/http"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/protocol"
)

// Web Push: the button by which a browser asks to be notified, and the worker that shows what comes.

//go:embed static/notices.js
var noticesJS []byte

// noticesPath is the path of the service worker. It is at the top, because a worker is for the pages below its own path.
const noticesPath = "/notices.js"

// noticesPage is the page of the account on which devices are.
const noticesPage = "/account/notices"

// notices serves the service worker. Browsers read it again when it may have changed.
func notices(w http.ResponseWriter, r *http.Request) {
	validate(w, r, "text/javascript; charset=utf-8", "no-cache", noticesJS)
}

// addDevice has this browser told of the thread, bid or meeting request that a page is about.
func (s *Web) addDevice(r *http.Request, o opened) error {
	f, args := r.PostForm, map[string]any{"of": r.PathValue("id"), "language": words.Of(r.Context()).Code}
	for _, name := range []string{"endpoint", "p256dh", "auth", "program"} {
		args[name] = f.Get(name)
	}
	if token, ok := o.args(r)[o.open]; ok {
		args["token"] = token
	}
	return s.invokeWith(r, protocol.AddDevice.Operation, args, nil, identity.Evidence{Network: s.Network(r), Session: session.Of(r, s.Base)})
}

// invokeWith invokes an operation as the caller that the evidence shows.
func (s *Web) invokeWith(r *http.Request, op *protocol.Operation, args, into any, e identity.Evidence) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	res, err := s.Table.Invoke(r.Context(), hall.Request{Op: op.Name, Args: raw, Door: "page", Evidence: e})
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(res.JSON, into)
}

// nowTold is the query of a page whose browser is notified from now on.
const nowTold = "?told=1"

// tells makes the button of a page about one thing.
func (s *Web) tells(r *http.Request) notifying {
	return notifying{key: s.PushKey, path: r.URL.Path, language: words.Of(r.Context()).Code, done: r.URL.Query().Has("told")}
}

// A notifying is the button by which a browser asks to be notified.
type notifying struct {
	key, path, language string
	done                bool // it is notified
}
