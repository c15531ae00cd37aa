package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// Texts of the pages in the reader's language. Their keys are the English texts, written where they
// are used: {tr(ctx, "Nobody has posted yet.")}. TestTexts finds them there.

// tr returns a text in the language of ctx; see [words.Language.Text].
func tr(ctx context.Context, key string, args ...any) string {
	return words.Of(ctx).Text(key, args...)
}

// english marks a text that tr translates elsewhere, from a table or variable.
func english(key string) string { return key }

// markup is a component of one element.
func markup(format string, args ...any) templ.Component {
	for i, arg := range args {
		args[i] = templ.EscapeString(fmt.Sprint(arg))
	}
	return templ.Raw(fmt.Sprintf(format, args...))
}

// newTab is a link that opens in another tab, so that what was typed stays in this one.
func newTab(path, key string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return markup(`<a href="%s" target="_blank" rel="noopener">%s</a>`, path, tr(ctx, key)).Render(ctx, w)
	})
}

// strong is what a sentence is about, such as an address.
func strong(text string) piece { return in(`strong translate="no"`, text) }

// linkTo is a link whose text somebody chose as a name.
func linkTo(path, name string) templ.Component {
	return markup(`<a href="%s" lang=""><bdi>%s</bdi></a>`, path, name)
}

// linkCode is a link whose text no language changes.
func linkCode(path, text string) templ.Component {
	return markup(`<a href="%s" translate="no">%s</a>`, path, text)
}

// codeLink is a link to what an error code means.
func codeLink(c protocol.Code) templ.Component {
	return markup(`<a href="/problems/%s"><code>%s</code></a>`, c, c)
}

// code is a text for programs, which no language changes.
func code(text string) piece { return in("code", text) }

// called is what somebody chose as a name, in a language that the page does not know.
func called(name string) piece { return piece{`<bdi lang="">`, "</bdi>", name} }

// scriptText matches a text in a script, where it is an argument of the script's own tr.
var scriptText = regexp.MustCompile(`\btr\("((?:[^"\\]|\\.)*)"`)

var keysOfScripts sync.Map // by the first byte of a script: []string

// scriptKeys returns the keys of the texts in a script.
func scriptKeys(js []byte) (keys []string) {
	if known, ok := keysOfScripts.Load(&js[0]); ok {
		return known.([]string)
	}
	for _, found := range scriptText.FindAllSubmatch(js, -1) {
		keys = append(keys, string(found[1]))
	}
	keysOfScripts.Store(&js[0], keys)
	return keys
}

// scriptWords are the texts of a script by their keys, for its attribute data-words; none in English, in which
// they are in the script.
func scriptWords(ctx context.Context, scripts ...[]byte) templ.Attributes {
	texts := map[string]string{}
	for _, js := range scripts {
		for _, key := range scriptKeys(js) {
			if text := tr(ctx, key); text != key {
				texts[key] = text
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	raw, err := json.Marshal(texts)
	if err != nil { // strings are always JSON
		return nil
	}
	return templ.Attributes{"data-words": string(raw)}
}

// refusedSignIn says why an attempt to sign in failed, in the language of ctx.
func refusedSignIn(ctx context.Context, why string) string {
	if text := detail(ctx, why); text != "" {
		return sentence(text)
	}
	return tr(ctx, "Try again, or choose another way.")
}

// inLanguage returns the request with a language and, for the log, the id of its answer in its context.
func inLanguage(w http.ResponseWriter, r *http.Request, l *words.Language) *http.Request {
	return r.WithContext(protocol.WithRequestID(words.With(r.Context(), l), w.Header().Get(requestID)))
}

// translated is a handler whose requests have their reader's language.
func (s *Web) translated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, inLanguage(w, r, s.Words.Choose(r))) })
}

// switchPath is where the form is sent that chooses a language.
const switchPath = "/language"

// switchLanguage keeps the reader's choice of a language in a cookie, and returns to the page.
func (s *Web) switchLanguage(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	l := s.Words.Find(r.PostForm.Get("language"))
	if l == nil {
		s.Fail(w, r, protocol.Errorf(protocol.InvalidRequest, "the pages are not written in that language"))
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: words.CookieName, Value: l.Code, Path: "/", MaxAge: 400 * 24 * 3600, HttpOnly: true, Secure: strings.HasPrefix(s.Base, "https://"),
		SameSite: http.SameSiteLaxMode, // also after a link of another site
	})
	redirect(w, r, within(r.PostForm.Get("to")))
}

// within returns a path of this node with its query, "/" for anything else.
func within(to string) string {
	u, err := url.ParseRequestURI(to)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(u.Path, "//") || strings.ContainsRune(u.Path, '\\') {
		return "/"
	}
	return u.RequestURI()
}

// backTo returns the address to which the switch of languages returns: that of the page, and that of
// the form for one which was refused. A very long query is left out.
func backTo(r *http.Request) string {
	if to := r.URL.RequestURI(); len(to) <= maxLink && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return to
	}
	return r.URL.EscapedPath()
}
