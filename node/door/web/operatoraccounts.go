package web

import (
	"net/http"

	"stoa/protocol"
)

// profileStates are why a profile is not shown, in words.
var profileStates = map[protocol.ProfileState]string{"": english("shown"), protocol.ProfilePending: english("waits for approval"),
	protocol.ProfileRefused: english("was refused"), protocol.ProfileSuspended: english("is suspended"), protocol.ProfileLeaving: english("is being deleted")}

// otherRole is the role that an account can be given instead of its own, and the words for that.
func otherRole(a protocol.KnownAccount) (protocol.Role, string) {
	if a.Role == protocol.RoleOperator {
		return protocol.RoleOwner, english("Make it an owner's account")
	}
	return protocol.RoleOperator, english("Make it an operator's account")
}

func (o *operatorView) readAccounts(s *Web, r *http.Request) (err error) {
	if o.Accounts, err = readList[protocol.KnownAccount](o, s, r, o.Page.list); err != nil {
		return err
	}
	handle := protocol.CleanHandle(o.Form.get("q"))
	if !protocol.IsHandle(handle) {
		return nil
	}
	var held protocol.ProfileHolder
	switch err := s.invokeSignedIn(r, protocol.ReadProfileHolder.Operation, map[string]any{"handle": handle}, &held); protocol.CodeOf(err) {
	case protocol.NotFound:
		return nil
	default:
		if err == nil {
			o.Holder = &held
		}
		return err
	}
}
