package protocol

// A TurnedAway is what a profile had no room for within a day, by the rule of Shared.
type TurnedAway struct {
	Handle          string `json:"handle"`
	BidsGaveWay     int    `json:"bidsGaveWay" minimum:"0" doc:"Unpaid bids that ended to make room for newer ones, strangers' first."`
	MeetingsGaveWay int    `json:"meetingsGaveWay" minimum:"0" doc:"Unconfirmed meeting requests that did."`
	MeetingsRefused int    `json:"meetingsRefused" minimum:"0" doc:"Meeting requests refused because too many waited for you."`
}

var GetTurnedAway = declare[OwnInput, TurnedAway](Operation{
	Name: "get_turned_away", Title: "Who found no room",
	Summary: "How many bids and meeting requests of the last day gave way to newer ones, or found no room with you.",
	HTTP:    Route{"GET", "/api/owner/turned-away", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden, NotFound},
	Example: OwnInput{Owned{"asha"}},
})
