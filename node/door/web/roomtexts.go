package web

import (
	"context"
	"strings"
)

// roomTexts are refusals and reasons that people meet on pages, as the rooms write them.
var roomTexts = []string{
	// enrolments to chain identities
	english("the token has a new owner"), english("the agent's wallet on chain was changed"),
	english("its key is no longer valid on chain, and no other key has replaced it"),
	english("the chain no longer has the block at which it was enrolled"), english("the registry no longer has this agent"),
	english("the agent now follows another token"), english("the profile was enrolled to another identity"),
	english("it was removed from the profile"),
	english("the identity's owner has not named a key on chain that this node keeps for the profile"),
	english("the profile has another identity; remove it first"), english("another profile of this node is enrolled to %s; remove it there first"),
	english("the key's registration is not final yet; try again in some minutes"), english("the registry has no such agent"),
	english("this node does not read that chain"), english("the chain cannot be read now; send the request again"),
	english("this node reads no blockchain, so it cannot check an identity"),

	// accounts, keys and signing in
	english("the account has %d tokens; revoke one first"), english("another account has this address"),
	english("this node sends no mail, so that no address can be confirmed; its operator can set one"),
	english("the profile has %d keys in use; retire one first"),
	english("this code was used before, has expired, or is for another address; set the address again for a new one"),
	english("this node sends no mail; give a webhook"), english("this is the account that you use; another operator, or stoa admin, closes it"),
	english("the account has %d passkeys, which is the most it can have; remove one first"),
	english("this took longer than ten minutes, or was begun in another browser; begin again"),
	english("a token cannot do this: sign in with a browser"), english("this passkey is there already"),
	english("this browser signed in at %s, which is more than 15 minutes ago; sign in again, then repeat it"),
	english("this link was used before or has expired; ask for a new one"),
	english("this recovery code was used before, was renewed, or is mistyped; each has 20 letters and digits and is used once"),
	english("your wallet is on another chain; switch it to one that this node reads: %s"),
	english("this Ethereum account signs nobody in: it owns no identity of a profile here now, or the signature is not its own; " +
		"use another way, such as a mail link"),
	english("this Ethereum account owns identities of several accounts here; give the handle of the profile too"),
	english("this passkey does not sign in here: it was removed, or is for another node; use another way, such as a mail link"),
	english("this passkey was used or removed at the same moment; try again"), english("the text that was signed has expired; begin again"),
	english("the text that was signed is not valid yet; check the clock of your device"), english("you have no profile on this node yet"),
	english("@%s is not one of your profiles"), english("this key is registered with another profile"),
	english("this key was retired and cannot be used again; make another"),

	// writing, the board and conversations
	english("similar texts were sent recently, so this one costs more; solve the challenge in this answer and send the same request again"),
	english("@%s does not accept messages from you"), english("this agent does not accept messages"),
	english("this agent does not accept anonymous messages; it accepts a request signed by an agent with a verified chain identity"),
	english("the thread is closed; begin another with contact_agent"), english("there is no agent @%s on this node"),
	english("there is no thread with that id that you may read; send its read token, or sign as its writer"),
	english("the operator of this node has blocked @%s"), english("this thread was begun by another writer; answer it with answer_thread"),
	english("this thread was begun by the node's operator, who cannot be blocked; close it"), english("only the author can delete this post"),
	english("this post was deleted"), english("this post is hidden"), english("there is no post with that id"),
	english("there is nothing at this path"), english("this was changed in the meantime, perhaps by you in another tab"),
	english("this was done when the form was sent first; what it made is shown only once"),
	english("the shop has no such item any more; nothing was changed"), english("these days are not in the list any more; nothing was changed"),

	// attention boards
	english("@%s has no attention board"), english("the floor is %s rupees"), english("@%s does not accept bids from you"),
	english("the owner of this board denied %d payments that you reported"), english("no slot can be had now"),
	english("you, or somebody in your network, has %d unpaid bids on this node; pay or withdraw one, or wait until one lapses"),
	english("you, or somebody in your network, has an unpaid bid on this board; pay it, withdraw it, or wait until it lapses"),
	english("the board of @%s takes no bids now"),
	english("the board of @%s takes no bids until its owner decides about payments that %d payers dispute"),
	english("the payment was disputed before; the owner of the board decides"),
	english("The owner has to decide about the payment that you dispute."),
	english("The owner denied the payment that you disputed. Ask your bank about it, and the owner."),
	english("this is your own board"), english("more than %d slots are in use; set slots higher, or wait until bids end"),
	english("this link was used before, or the bid has changed since; sign in to see it"), english("there is nothing to pay here now"),
	english("the bid is too old; ask the owner of the board"),
	english("%d references were reported for this bid, which is the most; ask the owner of the board"),
	english("this reference has confirmed a payment before; one payment pays one bid"),
	english("this reference was reported for another bid; one payment pays one bid"), english("payments by this provider are not confirmed by hand"),
	english("payments to this board are reported by their provider"), english("paid in another currency"), english("the bid was paid more than once"),
	english("less was paid than the bid"), english("the owner did not answer in time"),

	// the life of a payment
	english("no bid, payment, refund or event that you may see has this id; try the bank's reference of 12 digits, or the id of the bid"),
	english("payment link made"), english("it goes back"), english("payment arrived"), english("it paid for the slot"), english("event of the payment provider"),
	english("not applied yet"), english("the event is applied"), english("refund owed"), english("refund made"),
	english("the owner has to send the money back and mark the refund as made"), english("the refund is requested from the payment provider"),
	english("the refund was refused and is not tried again: the owner has to send the money back and mark it as made"),
	english("the refund was refused and is tried again; the owner may send the money back by hand"),
	english("the payment provider makes the refund, and is asked how far it is"),
	english("the refund is requested, there is no answer yet, and it is tried again"), english("the payer pays; otherwise the bid lapses"),
	english("the payment link is asked for"), english("the owner confirms or denies the payment; otherwise it is not confirmed"),
	english("the payer disputes it: the owner has to confirm or deny the payment"),
	english("nothing happens, unless the owner confirms the payment after all"), english("the owner answers; otherwise all of the money goes back"),
	english("its time on the board is over"), english("the payment provider is asked for payments"),
	english("no job does this any more: look at the jobs that were given up"), english("payment disputed"), english("bid made"),
	english("payment reported"), english("payment not confirmed"), english("bid lapsed"), english("bid withdrawn"), english("bid live"),
	english("bid displaced"), english("bid ended"), english("bid removed"), english("bid not answered"), english("all of the money has to go back"),
	english("refund begun"), english("money sent back"), english("refund refused"), english("the bid went live"),
	english("the bid went live; what was paid too much goes back"), english("live, paid less than a rupee too much, which stays"),
	english("no slot could be had: it goes back"), english("the bid was paid already: it goes back"), english("less than the bid: it goes back"),
	english("another currency: it goes back"), english("known already: nothing changed"), english("it waits for the event of its payment"),
	english("no bid of this account has the reference: nothing changed"), english("no refund of this account has the id: nothing changed"),
	english("refunded"), english("refunded by the owner"), english("refunded by the owner at the payment provider"),
	english("refunded again: all of the payment had gone back"), english("refunded in another currency"), english("the refund failed"),

	// why a bid moved
	english("the payer says once more that the payment was made"),
	english("displaced by a higher bid"),
	english("its time is over"),
	english("not answered in time"),
	english("not paid within 20 minutes"), english("gave way to newer bids: too many waited unpaid"),
	english("paid, and no slot could be had"),
	english("the money was sent back"),
	english("the owner did not confirm the payment in time"),
	english("the owner has to make the refund"),
	english("the owner says that the payment has not arrived"),
	english("the payer reports the payment"),
	english("the payment provider refused the refund"),
	english("the refund was ordered"),
	english("withdrawn by the bidder"),

	// meetings
	english("@%s takes no meeting requests now"), english("@%s does not accept meeting requests from you"),
	english("%d requests of yours, or of your network, to @%s wait; cancel one, or wait"),
	english("%d requests of yours, or of your network, wait on this node; cancel one, or wait"),
	english("many requests of strangers wait here, so this costs more; solve the challenge in this answer and send the same request again"),
	english("must be a mail address such as ravi@example.org"), english("must be a mail address that can be reached from the public Internet"),
	english("must be a mail address elsewhere than at this node"), english("@%s does not accept meeting requests from this mailbox"),
	english("too many requests wait for @%s; try again later"), english("a request of yours to @%s waits already; cancel it, or wait"),
	english("this is your own profile"), english("the meeting has not begun"),
	english("the meeting was moved %d times, which is the most; cancel it, and meet anew"), english("@%s has another meeting at %s"),
	english("nothing waits for this link any more: it was used before, the request has ended, or the link is old"),
	english("this link is not valid, or notices go to another address now; sign in to see the request"),
	english("too many requests wait for @%s; try this link again later"),
	english("the mail address of the request is deleted; nothing can be blocked by it"),
	english("the server has not answered yet; wait until get_calendar shows its calendars"),
	english("%d calendar servers are connected, which is the most; disconnect_calendar removes one"),

	// archives
	english("@%s belongs to another owner here; choose another handle with as"), english("the account has %d profiles, which is the most it can have"),
	english("the operator of this node has blocked this profile"),

	// operators
	english("the post has no open report"), english("the post was deleted"), english("the post has no report that was dismissed"),
	english("there is no block with that id"), english("nothing is stored any more about the writer of this post"),
	english("this node knows no %s of the writer of this post"), english("this node does not follow %s"),
	english("%s is this node, or a domain that it is in"), english("another job that does the same waits already; drop this one"),
	english("there are %d blocks already; lift some"),

	// receipts, reviews
	english("a slot on the attention board of @%s"), english("No money moved. This receipt is worth nothing."),
	english("Reviews on the chain with a receipt of the shop, or with a payment to it: ERC-8004 reputation registry %s, tag starred, average of 0 to 5."),
	english("It has a receipt of the shop, signed by the node: the shop's word that this account paid an order."),
	english("It names a payment on the chain from this account to the wallet of the business, before the review."),
	english("It has no tag starred, so it is no rating."),
	english("Its value is not a rating from 0 to 100."),
	english("The account that gave it is the owner or the wallet of the business."),
	english("The account that gave it has revoked it."),
	english("It names no file, so nothing proves an order."),
	english("Its file is at an address that this node does not read; it reads https: and data:."),
	english("Its file could not be fetched."),
	english("Its file is larger than 64 KiB."),
	english("Its file is not the one that the chain has the hash of."),
	english("Its file is not a feedback file of ERC-8004."),
	english("Its file says something else than the chain: of the business, the account or the value."),
	english("Its file has neither a receipt for an order nor a payment."),
	english("The receipt in its file is not signed by the node that it names."),
	english("The receipt in its file is of a node that this one does not trust."),
	english("The receipt in its file is for another business."),
	english("The receipt in its file is for another account."),
	english("The node that issued the receipt in its file does not know it."),
	english("The shop has revoked the receipt in its file."),
	english("Another review has used the same order or payment."),
	english("The payment is on a chain that this node does not read."),
	english("The payment is in no final block of the chain."),
	english("The payment failed."),
	english("The payment came after the review."),
	english("The payment went to another account than the wallet of the business."),
	english("The transaction paid nothing from the account that gave the review."),
	english("A second endpoint of the chain does not have it."),
	english("It, or its order, is from before the present owner got the identity: it is a former owner's."),
	english("The receipt in its file is of another shop."),
	english("The shop says that its order was refunded in full."),
	english("Its order is smaller than this node counts."),
	english("Its order is in a currency that this node does not count."),
	english("Another review of this account, less than 30 days before or after it, counts."),
	english("The business has as many counted reviews as a node keeps."),
	english("It is being checked."),
	english("no slot could be had"), english("more was paid than the bid"), english("displaced before its time was over"),
	english("removed by the owner of the board"), english("the board was closed"), english("This is a receipt of a payment, not a tax invoice."),
}

// receiptLabels are those of the lines of a receipt.
var receiptLabels = map[string]string{
	"Receipt": english("Receipt"), "Date": english("Date"), "Received by": english("Received by"), "Address": english("Address"), "GSTIN": english("GSTIN"),
	"Received from": english("Received from"), "Amount": english("Amount"), "Taxable value": english("Taxable value"),
	"Refunded": english("Refunded##on a receipt"), "Paid": english("Paid##on a receipt"), "Payment": english("Payment"),
	"Bank reference (UTR)": english("Bank reference (UTR)"), "For": english("For##on a receipt"), "Slot": english("Slot"),
	"Bid": english("Bid##on a receipt"), "Note": english("Note"), "TEST": english("TEST"),
}

// receiptLabel returns the label of a line of a receipt in the language of ctx.
func receiptLabel(ctx context.Context, label string) string {
	if key := receiptLabels[label]; key != "" {
		return tr(ctx, key)
	}
	if percent, ok := strings.CutSuffix(strings.TrimPrefix(label, "GST, "), " % included"); ok {
		return tr(ctx, "GST, %s%% included", percent)
	}
	return label
}
