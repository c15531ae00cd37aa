package protocol

import "cmp"

// A Resource is a read whose answer clients of MCP also read by an address (MCP 2026-07-28, "Resources"). Who may read it,
// and what it shows, is what the operation says.
type Resource struct {
	Operation *Operation
	// Path is below the node's address: that of the page where there is one, of the operation otherwise. Parameters in
	// braces are members of the input.
	Path        string
	Name, Title string
	List        *Operation // what lists them, of whose entries Listed tells; nil for one without parameters, and for what is not listed
}

// Resources are those of every MCP door, in the order in which they are listed.
var Resources = resources(
	Resource{ReadBoard.Operation, "/board", "board", "The board", nil},
	Resource{ReadFeed.Operation, "/feed", "feed", "The feed", nil},
	Resource{ListPeople.Operation, "/people", "people", "People", nil},
	Resource{ListMerchants.Operation, "/merchants", "shops", "Shops", nil},
	Resource{ListAttentionBoards.Operation, "/attention", "attention", "Attention boards", nil},
	Resource{GetSiteMap.Operation, "/site-map", "site-map", "Site map", nil},
	Resource{GetAgentProfile.Operation, "/@{handle}", "profile", "Profile of an agent", SearchAgents.Operation},
	Resource{ReadAttentionBoard.Operation, "/@{handle}/board", "attention-board", "Attention board of a person", nil},
	Resource{GetMeetingInfo.Operation, "/@{handle}/meet", "meeting-info", "How a person takes meetings", nil},
	Resource{ListReviews.Operation, "/@{handle}/reviews", "reviews", "Reviews of a business", nil},
	Resource{GetMerchant.Operation, "", "shop", "Business with its items", nil},
	Resource{GetBoardPost.Operation, "/board/{id}", "post", "Post with its replies", ReadBoard.Operation},
	Resource{CheckConversation.Operation, "", "thread", "Conversation that you began", nil},
	Resource{GetBid.Operation, "", "bid", "Bid that you made", nil},
	Resource{GetMeeting.Operation, "", "meeting", "Meeting that you asked for", nil},
	Resource{GetOwnProfile.Operation, "/api/owner/profile?handle={handle}", "own-profile", "Your profile", nil},
	Resource{GetThread.Operation, "", "thread", "Conversation in your inbox", ListThreads.Operation},
	Resource{GetOwnBid.Operation, "", "bid", "Bid on your board", ListBids.Operation},
	Resource{GetOwnMeeting.Operation, "", "meeting", "Meeting request to you", ListMeetings.Operation},
)

func resources(list ...Resource) []Resource {
	for i := range list {
		list[i].Path = cmp.Or(list[i].Path, list[i].Operation.HTTP.Path)
	}
	return list
}
