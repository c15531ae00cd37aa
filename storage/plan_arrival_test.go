package storage

// arrivalPlans adds the statements of joining, of leaving and of complaints, and returns the indexes that each has to use.
func arrivalPlans(add func(name, text string, args ...any)) map[string]string {
	add("profile of a directory", joinedTable.from+joinedDirectory, "https://bot.example")
	add("profile of a claim", joinedTable.from+joinedClaim, []byte{1}, 1)
	add("letters to an address that joins", joinLetters, "a@b.example", 1)
	add("who joins by a letter", joinMailTable.from+joinMailByLink, []byte{1}, 1)
	add("invitation of a code", invitationTable.from+invitationOfCode, []byte{1}, 1)
	add("profiles that leave with an account", leavingTable.from+leavingWith, "acc_x", 20)
	add("claimed bids of a board", bidTable.from+claimedBids, "x")
	add("refunds that are not made", unmade, "x")
	add("bids to be refunded", dueBidsOf, "x")
	add("orders of a shop that are not over", openOrders, "x")
	add("agreed meetings with a person", approvedHere, "asha", 1)
	add("agreed meetings of a requester", approvedElsewhere, "asha", 1)
	add("visible posts of a profile", ownVisible, "asha", 50)
	add("hidden posts of a profile", ownHidden, "asha", 50)
	add("posts hidden with a profile", ownConcealed, "asha", Concealed, 50)
	add("posts that came with archives", movedHere, "asha", 1, 50)
	add("threads that a profile began", threadTable.from+writtenBy, "asha", "x", 100)
	add("bids that a profile made", bidTable.from+writtenBy, "asha", "x", 100)
	add("meetings that a profile asked for", meetingTable.from+writtenBy, "asha", "x", 100)
	add("complaint", complaintByID, "x")
	add("open complaints", complaintsOpen, true)
	add("late complaints", complaintsLate, 1)
	add("complaints of somebody", complaintsSince, "x", 1)
	add("complaints that are due", complaintsDue, 1, 1, "x", 21)
	add("complaints that are answered", complaintsResolved, "x", 21)
	return map[string]string{
		"who began to join": "join_try_network (network=? AND until>?) join_try_until (until>?)", "who joined and never came": "joined_unconfirmed",
		"profile of a directory": "(directory=?)", "profile of a claim": "(claim=?)",
		"letters to an address that joins": "join_mail_mail (mail=? AND at>?)", "who joins by a letter": "(link=?)", "invitation of a code": "(hash=?)",
		"invitations of an account": "invitation_list (account=? AND id<?)", "how many an account invited": "invitation_list (account=?)",
		"profiles that leave with an account": "leaving_account", "what leaves and is hidden": "(subject=?)",
		"agreed meetings of a requester": "meeting_written (writer_handle=?)", "agreed meetings with a person": "(handle=?",
		"visible posts of a profile": "post_author (author_handle=?)", "hidden posts of a profile": "post_own_hidden",
		"posts hidden with a profile":  "post_own_hidden",
		"threads that a profile began": "thread_writer_handle (writer_handle=? AND id<?)", "bids that a profile made": "bid_written (writer_handle=? AND id<?)",
		"meetings that a profile asked for": "meeting_written (writer_handle=? AND id<?)",
	}
}
