package web

import (
	"context"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of how an account signs in: passkeys, recovery codes, and the browsers that are signed in.

const securityPath = "/account/security"

// passkeyTimes says when a passkey was added and last used.
func passkeyTimes(ctx context.Context, k protocol.Passkey) string {
	text := tr(ctx, "added %s", stamp(ctx, k.CreatedAt))
	if k.LastUsedAt != nil {
		text += ", " + tr(ctx, "last used %s", stamp(ctx, *k.LastUsedAt))
	}
	if k.BackedUp {
		text += "; " + tr(ctx, "kept on several devices")
	}
	return text
}

// codesLeft says how many recovery codes there are, and since when.
func codesLeft(ctx context.Context, m protocol.SignInMethods) string {
	if m.RecoveryCodesMadeAt != nil {
		return tr(ctx, "%d of ten are left; they were made %s.", m.RecoveryCodes, stamp(ctx, *m.RecoveryCodesMadeAt))
	}
	return tr(ctx, "%d of ten are left.", m.RecoveryCodes)
}

// browserName is what a browser is called, by what it calls itself: untrusted, and shown as text.
func browserName(ctx context.Context, program string) string {
	first := func(names ...string) string { // pairs of what to look for and what it is called
		for i := 0; i < len(names); i += 2 {
			if strings.Contains(program, names[i]) {
				return names[i+1]
			}
		}
		return ""
	}
	// Browsers claim to be those that are more common, so the rare ones come first.
	browser := first("Edg", "Edge", "OPR/", "Opera", "SamsungBrowser/", "Samsung Internet", "Firefox/", "Firefox", "FxiOS/", "Firefox", "CriOS/", "Chrome",
		"HeadlessChrome/", "Chrome", "Chrome/", "Chrome", "Safari/", "Safari")
	system := first("Windows", "Windows", "Android", "Android", "iPhone", "iPhone", "iPad", "iPad", "Macintosh", "Mac", "CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case browser != "" && system != "":
		return tr(ctx, "%s on %s##a browser on a system", browser, system)
	case browser != "":
		return browser
	case program == "":
		return tr(ctx, "A browser that does not say which")
	}
	return program
}

// codesBody shows new recovery codes when the page cannot be read.
func codesBody(codes []string) templ.Component {
	return all{title("Your new recovery codes"), codesNote(codes), ahead("/account", "Your account")}
}

// codesNote shows new recovery codes.
func codesNote(codes []string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return inside(`div class="done" role="status"`, inside("p", bold("Your new recovery codes.",
			tr(ctx, "Write them down or print them now: they are shown only once. Each signs you in once."))),
			inside("pre", code(strings.Join(codes, "\n"))))
	})
}
