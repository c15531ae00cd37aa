package storage

// A JobKind says which handler runs a job. Every kind is declared here and listed in
// JobKinds: a node does not start when a kind has no handler, or when a handler is
// registered for another kind.
type JobKind string

// Jobs of package federation.
const (
	ProcessJob       JobKind = "process"         // one received activity
	DeliverJob       JobKind = "deliver"         // one activity to one inbox
	ReportJob        JobKind = "report"          // a report of a post to the server of its author; enqueued by Moderation
	MessageJob       JobKind = "message"         // a message of an agent to a person of another server; enqueued by RemoteThreads
	SubmitJob        JobKind = "submit"          // a change of a post, to the board of another node or to a reader of the post; enqueued by package board
	EraseJob         JobKind = "erase"           // deletes the posts of a deleted account
	PullJob          JobKind = "pull"            // reads the log of a followed board
	WitnessJob       JobKind = "witness"         // asks a node that follows our board to cosign the tree of its log; the arguments are its actor
	RecheckJob       JobKind = "recheck"         // verifies the author of a post of another node again
	ReactionsJob     JobKind = "reactions"       // deletes reactions of an actor or host, or to a post; see DropReactions
	RejectJob        JobKind = "reject-follower" // tells the server of a follower that its follow is ended; the arguments are the Follower
	DropFollowersJob JobKind = "drop-followers"  // tells other servers that a deleted profile is gone, and deletes its followers; see GoneArgs
	EvictJob         JobKind = "evict"           // deletes rows of a stock over its cap; the arguments are the stock
)

// Jobs of package account. Their arguments hold no address and no secret: both are
// looked up or made when the job runs.
const (
	NoticeJob   JobKind = "notice"               // one notice to its owner, by the ways that the owner chose
	MailJob     JobKind = "notice-mail"          // a notice as mail
	WebhookJob  JobKind = "notice-webhook"       // a notice to the owner's webhook
	PushJob     JobKind = "push"                 // one message to a device by Web Push; the arguments are a Push
	SignInJob   JobKind = "sign-in-mail"         // a sign-in link to the address of an account
	ConfirmJob  JobKind = "confirm-mail"         // the code that confirms the address of a profile
	AddressJob  JobKind = "confirm-account-mail" // the code that confirms a new address of an account
	FormerJob   JobKind = "former-account-mail"  // informs the former address of the change
	JoinJob     JobKind = "join-mail"            // the code that confirms the address of who joins
	LapseJob    JobKind = "lapse-joins"          // deletes joins that nobody finished
	SecurityJob JobKind = "security-mail"        // tells an owner of a change to how they sign in
)

// Jobs of the other packages of node.
const (
	CallbackJob  JobKind = "callback"     // one attempt at one delivery of a reply; a failed one is retried by a new job
	TaskPushJob  JobKind = "task-push"    // one attempt to tell an address what has changed of an exchange; the arguments are a PushKey
	SilenceJob   JobKind = "silence"      // closes a thread after thirty days without a message (contract §5)
	CatalogJob   JobKind = "catalog"      // reads a catalog at its address and enqueues the next reading
	ImportJob    JobKind = "import"       // finishes an interrupted import
	FollowJob    JobKind = "follow"       // follows another node's board; also the prefix of its dedupe key
	UnfollowJob  JobKind = "unfollow"     // stops following a board
	ProbeJob     JobKind = "probe"        // asks which agents are alive; one runs at a time over all processes
	PruneJob     JobKind = "prune"        // deletes expired rows, as in the table of docs/OPERATIONS.md
	ScrubJob     JobKind = "scrub"        // removes words of what was deleted from the file of SQLite
	PartsJob     JobKind = "parts"        // moves what is long of old posts into files, and erases there what was deleted
	HoursJob     JobKind = "hours"        // computes "open now" of merchants whose stored interval is over; counts the words of new posts
	ExamineJob   JobKind = "examine"      // examines the node itself and enqueues the next examination
	AdoptJob     JobKind = "adopt"        // joins replies to a parent that arrived after them; the arguments are the id of the parent
	ForgetJob    JobKind = "forget"       // deletes posts of another node that are not there any more; see ForgetArgs
	AgentToldJob JobKind = "agent-told"   // tells other nodes what a shop is found by; the arguments are the handle
	ShopWordsJob JobKind = "shop-words"   // computes what a merchant with a large catalog is found by; the arguments are the handle
	DropItemsJob JobKind = "drop-items"   // deletes the rest of the items of a deleted profile; the arguments are its number
	DirectoryJob JobKind = "directory"    // reads a followed directory and enqueues the next reading; the arguments are its address
	ConcealJob   JobKind = "conceal"      // hides the posts of a profile that is not shown, or shows them again; see ConcealArgs
	DocumentsJob JobKind = "documents"    // reads registration documents of chain identities that are due; one runs at a time over all processes
	DropJob      JobKind = "drop-threads" // deletes the rest of the threads of a deleted profile; the arguments are the handle
)

// Jobs of package leave.
const (
	LeaveJob        JobKind = "leave"         // takes the next step of a deletion by its owner; the arguments are the handle or the account
	EraseProfileJob JobKind = "erase-profile" // deletes some of what a profile that is gone had and wrote; see package leave
)

// Jobs of package order.
const (
	OrderDueJob  JobKind = "order-due"  // ends the wait for the payment of an order at its time
	OrderMailJob JobKind = "order-mail" // one attempt to tell the buyer of a change of an order
	OrderTellJob JobKind = "order-tell" // one attempt to tell the platform of UCP that began it
)

// Jobs of package attention, and of package money, which has the payments of orders too.
const (
	BidDueJob    JobKind = "bid-due"      // ends a hold, a wait or a live bid at its time
	BidLinkJob   JobKind = "bid-link"     // makes the payment link of a bid
	BidCancelJob JobKind = "bid-cancel"   // closes it
	BidPollJob   JobKind = "bid-poll"     // asks the provider about it
	PayEventJob  JobKind = "pay-event"    // applies one event of a provider
	RefundJob    JobKind = "refund-bid"   // makes one refund
	BidUpdateJob JobKind = "bid-callback" // one attempt to tell the bidder's callbackUrl of one change
)

// Jobs of package meeting.
const (
	MeetingDueJob    JobKind = "meeting-due"      // deletes, expires or ends a request at its time
	MeetingMailJob   JobKind = "meeting-mail"     // one attempt to send the mail about one change of a request
	MeetingRemindJob JobKind = "meeting-remind"   // reminds both sides of a meeting, or makes one attempt to send the requester's mail
	MeetingUpdateJob JobKind = "meeting-callback" // one attempt to tell the requester's callbackUrl of one change
	CalendarCheckJob JobKind = "calendar-check"   // lists the calendars of an account at a calendar server
	CalendarBusyJob  JobKind = "calendar-busy"    // reads the busy times of an account; enqueues the next reading
	CalendarEventJob JobKind = "calendar-event"   // one attempt to write or delete the event of a meeting
)

// ComplaintMailJob is a job of package complaint: it decides about, or sends, one letter to the mailbox of a complaint.
const ComplaintMailJob JobKind = "complaint-mail"

// Jobs of package reputation.
const (
	FeedbackJob      JobKind = "feedback"       // reads the events of one reputation registry; the arguments are its identity registry
	FeedbackCheckJob JobKind = "feedback-check" // fetches files of reviews, asks the chain about payments, and decides
)

// Heavy reports whether a job of the kind may need much memory: no more of these run than there are places.
func (k JobKind) Heavy() bool {
	return k == ImportJob || k == CatalogJob || k == DirectoryJob || k == ShopWordsJob
}

// JobKinds returns every kind.
func JobKinds() []JobKind {
	return []JobKind{
		ProcessJob, DeliverJob, SubmitJob, EraseJob, PullJob, RecheckJob, EvictJob, ReactionsJob, DropFollowersJob, RejectJob, MessageJob, ReportJob, WitnessJob,
		NoticeJob, MailJob, WebhookJob, PushJob, SignInJob, ConfirmJob, AddressJob, FormerJob, SecurityJob, JoinJob, LapseJob,
		CallbackJob, TaskPushJob, SilenceJob, ImportJob, FollowJob, UnfollowJob, ProbeJob, PruneJob, ScrubJob, PartsJob, HoursJob, ExamineJob, AdoptJob, DropJob,
		ShopWordsJob, DropItemsJob, CatalogJob,
		DocumentsJob, AgentToldJob, ForgetJob, DirectoryJob, ConcealJob, LeaveJob, EraseProfileJob,
		BidDueJob, BidLinkJob, BidCancelJob, BidPollJob, PayEventJob, RefundJob, BidUpdateJob,
		OrderDueJob, OrderMailJob, OrderTellJob, MeetingDueJob, MeetingMailJob, MeetingRemindJob, MeetingUpdateJob, CalendarCheckJob, CalendarBusyJob,
		CalendarEventJob, FeedbackJob, FeedbackCheckJob, ComplaintMailJob,
	}
}
