package protocol

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// written are the names of members that hold what someone wrote.
var written = []string{
	"about", "answer", "answers", "bio", "body", "by", "comment", "content", "covers", "description", "detail", "excerpt",
	"headline", "instructions", "label", "message", "name", "note", "product", "purpose", "question", "quote", "reason",
	"snippet", "subject", "summary", "text", "title",
}

// ours are members of those names that hold the node's own words, or give the
// caller's own back. Type and member, and whose words they are.
var ours = map[string]string{
	"SiteEntry.purpose":   "the declarations'",
	"Data.purpose":        "an enum",
	"SessionState.name":   "the caller's own account (contract §4)",
	"Account.name":        "the caller's own",
	"Token.name":          "the caller's own",
	"Invitation.note":     "the caller's own",
	"HeldProfile.name":    "the caller's own",
	"HeldCredential.name": "the caller's own", "HeldCredential.detail": "a key, an address, scopes, or what the caller's own browser calls itself",
	"Passkey.name": "the caller's own", "PasskeyOptions.name": "the caller's own",

	"IdentityStatus.note":     "the node's",
	"AgentLink.name":          "the name of a host, or an identity",
	"IdentityEnd.detail":      "the node's",
	"LineFault.detail":        "the node's, about the caller's own file",
	"ModerationEntry.subject": "a name, no text", "ModerationEntry.reason": "the operator's",
	"ModerationNote.subject": "the operator's", "ModerationNote.text": "the operator's",
	"Block.reason": "the operator's", "Block.note": "the operator's",
	"PostStanding.reason": "the operator's", "ReviewStanding.reason": "the operator's",
}

// TestUntrusted_EveryResult walks the results of all operations: an object with a
// text that someone wrote says untrusted_content, itself or by the object that
// it is part of (contract §1).
func TestUntrusted_EveryResult(t *testing.T) {
	t.Parallel()
	marked := 0
	for _, op := range Operations() {
		marked += untrusted(t, op.Name, op.Out, nil)
	}
	require.Greater(t, marked, 5)
}

func untrusted(t *testing.T, op string, typ reflect.Type, within []reflect.Type) (marked int) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return untrusted(t, op, typ.Elem(), within)
	case reflect.Struct:
	default:
		return 0
	}
	if slices.Contains(within, typ) {
		return 0
	}
	within = append(slices.Clip(within), typ)
	for _, f := range reflect.VisibleFields(typ) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == "untrusted_content" {
			require.Equal(t, reflect.Bool, f.Type.Kind())
			return 1 // and all it holds
		}
	}
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.String {
			marked += untrusted(t, op, f.Type, within)
			continue
		}
		free := f.Tag.Get("enum") == "" && PatternOf(f.Tag) == "" && f.Tag.Get("format") == ""
		if at := typ.Name() + "." + name; free && slices.Contains(written, name) && ours[at] == "" {
			t.Errorf("%s gives %s, which somebody wrote, without untrusted_content beside it; if the words are the node's own, name it in ours", op, at)
		}
	}
	return marked
}
