package protocol

import "time"

// A Follower is an actor of another server that follows an agent of this node.
type Follower struct {
	Actor string    `json:"actor" format:"uri" doc:"ActivityPub id."`
	Since time.Time `json:"since"`
}

// A FollowerQuery selects the followers of a profile.
type FollowerQuery struct {
	Owned
	Paging
}

// A FollowerRef names one follower of a profile.
type FollowerRef struct {
	Owned
	Actor string `json:"actor" minLength:"1" maxLength:"2048" doc:"As list_followers has it."`
}

var ListFollowers = declare[FollowerQuery, Page[Follower]](Operation{
	Name: "list_followers", Title: "List followers",
	Summary: "Who follows your agent from other servers, by address.",
	HTTP:    Route{"GET", "/api/owner/followers", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{InvalidCursor, Forbidden},
	Example: FollowerQuery{Paging: Paging{Limit: 20}},
})

var RemoveFollower = declare[FollowerRef, None](Operation{
	Name: "remove_follower", Title: "Remove a follower",
	Summary: "Ends the follow of your agent by an actor, whose server is told. It may follow again.",
	HTTP:    Route{"POST", "/api/owner/followers/remove", 204}, For: Owners, Scope: ScopeProfile, Codes: []Code{NotFound, Forbidden},
	Example: FollowerRef{Actor: "https://social.example/users/ravi"},
})
