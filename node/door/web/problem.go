package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// codeOf returns the error code that the path names.
// wayOn is what a reader of an error can do next.
func wayOn(code protocol.Code, handle string) templ.Component {
	switch {
	case code == protocol.Gone:
		return linkAs(`class="button"`, "/moderation", "What was hidden or deleted here, and why")
	case handle != "":
		return linkAs(`class="button"`, "/@"+handle, "The page of %s", "@"+handle)
	case code == protocol.NotFound:
		return linkAs(`class="button"`, "/agents", "Find a shop, a person or an agent")
	}
	return linkAs(`class="button"`, "/", "Home")
}

func codeOf(r *http.Request) (protocol.Code, error) {
	code := protocol.Code(r.PathValue("code"))
	if !slices.Contains(protocol.Codes(), code) {
		return "", protocol.Errorf(protocol.NotFound, "there is no error code with that name")
	}
	return code, nil
}

// problemText is the page of an error code for readers that do not name HTML.
func problemText(_ *Web, r *http.Request) (string, error) {
	code, err := codeOf(r)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (HTTP %d)\n\n%s.\n\n%s\n", code, code.Status(), code.Title(), code.Advice()), nil
}

// problemOf returns an error code as data.
func problemOf(c protocol.Code) Problem { return Problem{c, c.Status(), c.Title(), c.Advice()} }

// problemsText is the list of all codes for readers that do not name HTML.
func problemsText(_ *Web, r *http.Request) (string, error) {
	var b strings.Builder
	for _, c := range allCodes() {
		fmt.Fprintf(&b, "%s (HTTP %d): %s.\n", c, c.Status(), c.Title())
	}
	return b.String(), bare(r)
}

func (s *Web) problems(r *http.Request) (view, error) {
	var all []Problem
	for _, c := range allCodes() {
		all = append(all, problemOf(c))
	}
	return view{Title: tr(r.Context(), "Error codes"), Description: tr(r.Context(), "What each error code of this node means."), Data: all,
		Body: problemsPage()}, bare(r)
}

func (s *Web) problem(r *http.Request) (view, error) {
	if err := bare(r); err != nil {
		return view{}, err
	}
	code, err := codeOf(r)
	if err != nil {
		return view{}, err
	}
	return view{Title: tr(r.Context(), code.Title()), Description: tr(r.Context(), code.Title()) + ". " + tr(r.Context(), code.Advice()),
		Data: problemOf(code), Body: problemPage(code)}, nil
}

// again says whether a retry helps.
func again(ctx context.Context, c protocol.Code) string {
	if c.Temporary() {
		return tr(ctx, "Temporary: the same request may succeed later. Wait at least as long as Retry-After says.")
	}
	return tr(ctx, "Final: the same request will fail again. Change it first.")
}

// ownWords is a sentence of a room: in the reader's language, or as the room wrote it.
func ownWords(text string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		if translated := detail(ctx, text); translated != "" {
			return in("span", sentence(translated))
		}
		return in(`span lang="en" translate="no"`, sentence(text))
	})
}

// refusedDetail is what exactly was wrong: in the reader's language, or as the room wrote it.
func refusedDetail(e *protocol.Error) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		if len(e.Faults) == 1 {
			return in("p", memberFault(ctx, e.Faults[0]))
		} else if text := detail(ctx, e.Detail); text != "" {
			return in("p", sentence(text))
		}
		return when(e.Detail != "", in(`p class="hint" lang="en" translate="no"`, sentence(e.Detail)))
	})
}
