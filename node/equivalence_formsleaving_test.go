package node_test

import (
	"context"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// leavingForms are those that delete. They are the last ones: an account that is closed is signed out.
func leavingForms() []formRow {
	goner := func(s *formSide) map[string]string {
		_ = s.Admin().DeleteProfile(context.Background(), "goner")
		s.PutProfile([]byte(`{"handle":"goner","name":"Goner","kind":"person"}`))
		require.NoError(s.T, s.Admin().LinkProfile(context.Background(), s.account, "goner"))
		return map[string]string{"handle": "goner"}
	}
	const page, read = "/account/leave?handle=goner", "/api/public/agents/goner"
	return []formRow{
		{op: protocol.DeleteProfile.Operation, page: page, about: goner, read: read},
		{op: protocol.RestoreProfile.Operation, page: page, read: read, about: func(s *formSide) map[string]string {
			about := goner(s)
			s.signedIn("DELETE", "/api/owner/profile?handle=goner", "", nil)
			return about
		}},
		{op: protocol.DeletePost.Operation, page: "/board/{id}", id: "delete", never: "this browser has not written it: TestVisitor_DeletesPost",
			read: "/api/public/board/{id}", about: func(s *formSide) map[string]string { return map[string]string{"id": s.Post("Yarn").ID} }},
		{op: protocol.CloseAccount.Operation, page: "/account/close", read: "/api/public/session", about: func(s *formSide) map[string]string {
			account, _ := s.OpenAccount("Closer", protocol.RoleOwner, "")
			s.owner = s.SessionOf(account.ID, 0)
			return nil
		}},
	}
}
