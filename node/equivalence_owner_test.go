package node_test

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/session"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// own makes what an owners' operation is about, so that it is there, and returns
// the arguments that name it.
func ownThing(d *nodetest.Doors, op *protocol.Operation, args map[string]any) map[string]any {
	d.T.Helper()
	if bid(d, op, args) {
		return args
	}
	ask := func(method, path, body string, into any) {
		d.T.Helper()
		d.Good(method, path, body, d.Token, into)
	}
	var made map[string]any
	switch id := fmt.Sprint(args["id"]); {
	case op == protocol.DeleteNeed.Operation:
		args["id"] = "short-lived"
		ask("PUT", "/api/owner/needs/short-lived", `{"description":"x"}`, &made)
	case op == protocol.DeleteCapability.Operation:
		args["id"] = "short-lived"
		ask("PUT", "/api/owner/capabilities/short-lived", `{"name":"x","description":"x"}`, &made)
	case op == protocol.GetOwnItem.Operation, op == protocol.RemoveItem.Operation:
		args["sku"] = "short-lived"
		d.Good("PUT", "/api/owner/merchant/items/short-lived", `{"name":"x"}`, d.Shop, &made)
	case op == protocol.GetCatalogAddress.Operation, op == protocol.ReadCatalogAddress.Operation, op == protocol.RemoveCatalogAddress.Operation:
		d.Good("PUT", "/api/owner/merchant/address", `{"handle":"bazaar","url":"https://127.0.0.1:1/items.csv"}`, d.Shop, &made)
	case op == protocol.GetPicture.Operation, op == protocol.RemovePicture.Operation:
		delete(args, "sku")
		d.House.Ask("PUT", "/api/owner/picture?handle=asha", pictureOf(d.T, color.White, 8, 8),
			"Authorization", "Bearer "+d.Token, "Content-Type", "image/png").Is(200)
	case op == protocol.PutItems.Operation: // which says what it changed
		d.Good("PUT", "/api/owner/merchant/items/masala-dosa", `{"name":"x"}`, d.Shop, &made)
	case op == protocol.UnblockWriter.Operation:
		if d.Spam == "" {
			var begun protocol.ContactReceipt
			ask("PUT", "/api/owner/profile", person, &made)
			a := d.House.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Buy now"}`, "Authorization", "Bearer "+d.Shop).Is(201)
			a.Into(&begun)
			d.Spam = begun.ThreadID
		}
		var block protocol.BlockedWriter
		ask("POST", "/api/owner/threads/"+d.Spam+"/block", `{}`, &block)
		args["id"] = block.ID
	case op == protocol.RetireKey.Operation:
		var k protocol.Key
		ask("POST", "/api/owner/keys/kept", `{}`, &k)
		args["keyid"] = k.KeyID
	case op == protocol.DropIdentity.Operation:
		require.NoError(d.T, d.House.Admin().PutIdentity(d.T.Context(), "asha", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7", strings.Repeat("k", 43)))
	case op == protocol.ConnectCalendar.Operation, op == protocol.ListCalendars.Operation: // without what a job has found out of others
		require.NoError(d.T, d.House.DB.Write(d.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
			all, err := tx.Calendars().OfProfile(ctx, "asha")
			for _, a := range all {
				err = errors.Join(err, tx.Calendars().Delete(ctx, a.ID))
			}
			return err
		}))
	case strings.HasPrefix(id, protocol.CalendarID+"_"):
		require.NoError(d.T, d.House.DB.Write(d.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
			a := &storage.CalendarAccount{Handle: "asha", Sealed: []byte{0}, CalendarDoc: storage.CalendarDoc{Address: "https://cal.example.org/", User: "asha",
				Found: []protocol.FoundCalendar{{URL: "https://cal.example.org/asha/", Name: "Work"}}}}
			all, err := tx.Calendars().OfProfile(ctx, "asha")
			for _, old := range all { // there may be five, and jobs may be asking them
				err = errors.Join(err, tx.Calendars().Delete(ctx, old.ID))
			}
			err = errors.Join(err, tx.Calendars().Put(ctx, a))
			args["id"] = a.ID
			return err
		}))
	case strings.HasPrefix(id, protocol.InvitationID+"_"):
		var i protocol.Invited
		ask("POST", "/api/owner/invitations", `{}`, &i)
		args["id"] = i.ID
	case strings.HasPrefix(id, protocol.TokenID+"_"):
		var page protocol.Page[protocol.Token] // an account has 100 at most, and those of other calls may stay
		ask("GET", "/api/owner/tokens?limit=100", "", &page)
		for _, t := range page.Items {
			if t.RevokedAt == nil && t.Name != "first" && t.Name != "all" {
				args["id"] = t.ID
				return args
			}
		}
		var t protocol.MadeToken
		ask("POST", "/api/owner/tokens", `{"name":"x","scopes":["post"]}`, &t)
		args["id"] = t.Token.ID
	case strings.HasPrefix(id, protocol.SessionID+"_"):
		var a protocol.Account
		ask("GET", "/api/owner/account", "", &a)
		_, hash := session.New(session.Cookie)
		require.NoError(d.T, d.House.DB.Write(d.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
			args["id"] = protocol.NewID(protocol.SessionID, tx.Now)
			return tx.Sessions().Insert(ctx, storage.Session{ID: args["id"].(string), Hash: hash, Account: a.ID, ExpiresAt: tx.Now.Add(time.Hour)})
		}))
	}
	return args
}
