package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The operators' pages: what waits for a decision, peers, blocks and limits, health, jobs, numbers, audit.
// Everything that they show and do is an operation for operators, whose right the gate checks.

// nodePath is the first of them.
const nodePath = "/account/node"

// An operatorPage is a page for operators, with one subject. A new one needs a row in operatorPages and a
// template.
type operatorPage struct {
	path, title, about string
	forms              []*protocol.Operation
	list               *protocol.Operation                            // it shows, and whose filters its address may have; nil: it has none
	shows              []*protocol.Operation                          // whose answers it shows
	read               func(*operatorView, *Web, *http.Request) error // what else, or what before
	body               func(*operatorView) templ.Component
}

// operatorPages is the table. A function, since the templates read it too.
func operatorPages() []operatorPage {
	return []operatorPage{
		{path: nodePath, title: english("This node"), shows: []*protocol.Operation{protocol.ReadHealth.Operation}, body: nodeBody},
		{path: nodePath + "/queue", title: english("Queue"), about: english("Posts that readers or other servers reported, for your decision."),
			forms: []*protocol.Operation{protocol.HidePost.Operation, protocol.RestorePost.Operation, protocol.DismissReports.Operation,
				protocol.ReopenReports.Operation, protocol.ForwardReport.Operation, protocol.RemovePost.Operation, protocol.AddNote.Operation,
				protocol.DeleteNote.Operation, protocol.AddBlock.Operation, protocol.LiftBlock.Operation},
			list: protocol.ListReviewQueue.Operation, read: (*operatorView).readQueue, body: queueBody},
		{path: nodePath + "/joining", title: english("Newcomers"), about: english("Profiles that wait for your approval."),
			forms: []*protocol.Operation{protocol.DecideJoining.Operation}, list: protocol.ListJoining.Operation, body: joiningBody},
		{path: nodePath + "/complaints", title: english("Complaints"),
			about: english("What anybody says to you about this node, with the dates by which you answer."),
			forms: []*protocol.Operation{protocol.AnswerComplaint.Operation},
			list:  protocol.ListComplaints.Operation, body: complaintsBody},
		{path: nodePath + "/accounts", title: english("Accounts"),
			about: english("Who has an account here and which profiles; sign-in links, roles, lost passkeys, suspensions."),
			forms: []*protocol.Operation{protocol.OpenAccount.Operation, protocol.MakeSignInLink.Operation, protocol.SetRole.Operation,
				protocol.SignOut.Operation, protocol.SuspendProfile.Operation, protocol.LiftSuspension.Operation, protocol.MakeArchiveLink.Operation},
			list: protocol.ListAccounts.Operation, read: (*operatorView).readAccounts, body: accountsBody},
		{path: nodePath + "/reviews", title: english("Hidden reviews"), about: english("Reviews of businesses whose text an operator has hidden."),
			forms: []*protocol.Operation{protocol.HideReview.Operation, protocol.RestoreReview.Operation},
			list:  protocol.ListHiddenReviews.Operation, body: hiddenReviewsBody},
		{path: nodePath + "/peers", title: english("Peers"), about: english("Boards that this node follows, and servers that it delivers to."),
			forms: []*protocol.Operation{protocol.FollowPeer.Operation, protocol.UnfollowPeer.Operation, protocol.RetryPeer.Operation,
				protocol.RereadPeer.Operation, protocol.SetPeerPolicy.Operation, protocol.AddBlock.Operation, protocol.LiftBlock.Operation,
				protocol.FollowDirectory.Operation, protocol.UnfollowDirectory.Operation},
			list: protocol.ListPeers.Operation, shows: []*protocol.Operation{protocol.ListDirectories.Operation}, body: peersBody},
		{path: nodePath + "/blocks", title: english("Blocks and limits"), about: english("Who may not write here, and how much everybody may."),
			forms: []*protocol.Operation{protocol.AddBlock.Operation, protocol.LiftBlock.Operation, protocol.SetLimits.Operation, protocol.ResetLimits.Operation},
			list:  protocol.ListBlocks.Operation, shows: []*protocol.Operation{protocol.ReadLimits.Operation}, body: blocksBody},
		{path: nodePath + "/money", title: english("Money"), about: english("What became of a payment for a bid, and what has to happen next."),
			list: protocol.TracePayment.Operation, read: (*operatorView).readMoney, body: moneyBody},
		{path: nodePath + "/health", title: english("Health"), about: english("Jobs, storage, chains, mail and payments, and what to do when one is red."),
			forms: []*protocol.Operation{protocol.LookAgain.Operation}, shows: []*protocol.Operation{protocol.ReadHealth.Operation}, body: healthBody},
		{path: nodePath + "/jobs", title: english("Jobs"), about: english("Work that waits or was given up, and why."),
			forms: []*protocol.Operation{protocol.RequeueJob.Operation, protocol.DropJob.Operation},
			list:  protocol.ListJobs.Operation, body: jobsBody},
		{path: nodePath + "/numbers", title: english("Numbers"), about: english("Reads, writes, proofs, reports and deliveries of the last day and month."),
			shows: []*protocol.Operation{protocol.ReadStatistics.Operation}, read: (*operatorView).readNumbers, body: numbersBody},
		{path: nodePath + "/audit", title: english("Audit"), about: english("Every decision and every act of operators and owners."),
			list: protocol.ReadAudit.Operation, read: (*operatorView).readAudit, body: auditBody},
	}
}

// An operatorView is what a page shows.
type operatorView struct {
	answers
	Page    operatorPage
	Form    *form // the selection of the list
	Next    string
	Done    string   // key of what was done, "" for nothing
	Undo    *undoing // how to undo that
	Sent    *sent    // the form that was refused
	Names   map[string]string
	Holder  *protocol.ProfileHolder
	SignIn  *protocol.SignInLink // that was made, shown once
	Day     protocol.Traffic
	Month   protocol.Traffic
	Missing string // why nothing was traced
}

// An undoing is the operation that undoes what a form did.
type undoing struct{ do, name, value string }

// operatorDone says what a form did, and which operation undoes that, if one does.
var operatorDone = map[string]struct {
	text string
	undo *protocol.Operation
	name string // of the field that names the subject
}{
	firstOperator:            {english("You are the operator of this node."), nil, ""},
	"decide_joining":         {english("It is decided, and the applicant is told."), nil, ""},
	"hide_post":              {english("The post is hidden."), protocol.RestorePost.Operation, "id"},
	"restore_post":           {english("The post is visible."), protocol.HidePost.Operation, "id"},
	"dismiss_reports":        {english("The post stays, and its reports count no longer."), protocol.ReopenReports.Operation, "id"},
	"reopen_reports":         {english("The post waits for a decision again."), nil, ""},
	"forward_report":         {english("The report is on its way to the server of the author."), nil, ""},
	"answer_complaint":       {english("The author of the complaint can read it."), nil, ""},
	"open_account":           {english("The account is open. Give this link to its owner; it is shown only now:"), nil, ""},
	"make_sign_in_link":      {english("Give this link to the owner of the account; it is shown only now:"), nil, ""},
	"make_archive_link":      {english("Give this link to the owner of the profile; it is shown only now:"), nil, ""},
	"set_role":               {english("The account has its new role."), nil, ""},
	"sign_out":               {english("The account is signed out everywhere."), nil, ""},
	"suspend_profile":        {english("The profile is suspended."), protocol.LiftSuspension.Operation, "handle"},
	"lift_suspension":        {english("The profile is shown again."), nil, ""},
	"hide_review":            {english("The text of the review is hidden."), protocol.RestoreReview.Operation, "id"},
	"restore_review":         {english("The text of the review is shown."), protocol.HideReview.Operation, "id"},
	"remove_post":            {english("The post is deleted for good."), nil, ""},
	"add_moderation_note":    {english("The note was added."), protocol.DeleteNote.Operation, "id"},
	"delete_moderation_note": {english("The note was deleted."), nil, ""},
	"add_node_block":         {english("The block is in force."), protocol.LiftBlock.Operation, "id"},
	"lift_node_block":        {english("The block is lifted."), nil, ""},
	"follow_peer":            {english("The board will be followed within a second, or tried for a day."), protocol.UnfollowPeer.Operation, "url"},
	"unfollow_peer":          {english("The board is followed no longer. Its posts stay."), protocol.FollowPeer.Operation, "url"},
	"retry_peer":             {english("It is tried now. Load the page again to see how it went."), nil, ""},
	"reread_peer":            {english("Its log is read again from its beginning."), nil, ""},
	"set_peer_policy":        {english("The policy is in force."), nil, ""},
	"follow_directory":       {english("The directory is read now, and then daily."), protocol.UnfollowDirectory.Operation, "url"},
	"unfollow_directory":     {english("The directory is followed no longer, and its entries are deleted."), protocol.FollowDirectory.Operation, "url"},
	"look_again":             {english("The node is examining itself. Load the page again in a minute."), nil, ""},
	"set_limits":             {english("The limits are in force within two seconds."), protocol.ResetLimits.Operation, ""},
	"reset_limits":           {english("The limits are those of the configuration again."), nil, ""},
	"requeue_job":            {english("The job waits again, and is tried now."), nil, ""},
	"drop_job":               {english("The job was deleted."), nil, ""},
}

// operatorRoutes returns the routes of the operators' pages.
func (s *Web) operatorRoutes() (routes []Route) {
	for _, p := range operatorPages() {
		routes = append(routes, Route{Pattern: p.path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.operatorPage(w, r, p)
		})})
		if p.forms != nil {
			routes = append(routes, s.forms(p.path, func(w http.ResponseWriter, r *http.Request) { s.operatorForm(w, r, p) }, p.forms...))
		}
	}
	return routes
}

// operatorPage shows a page, after a form with what that did.
func (s *Web) operatorPage(w http.ResponseWriter, r *http.Request, p operatorPage) {
	o := &operatorView{Page: p}
	query := r.URL.Query()
	if done, ok := operatorDone[query.Get("done")]; ok {
		o.Done = done.text
		if done.undo != nil && (done.name == "" || query.Get("of") != "") {
			o.Undo = &undoing{done.undo.Name, done.name, query.Get("of")}
		}
	}
	s.showOperator(w, r, o)
}

// showOperator reads what a page shows, and writes it.
func (s *Web) showOperator(w http.ResponseWriter, r *http.Request, o *operatorView) {
	query, err := queryOf(r)
	if err == nil {
		query.Del("done")
		query.Del("of")
		selected := r.Clone(r.Context())
		selected.URL.RawQuery = query.Encode()
		if o.Page.list != nil {
			o.Form, err = s.form(selected, o.Page.list)
		} else {
			err = bare(selected)
		}
	}
	if err == nil {
		err = o.fill(s, r)
	}
	switch {
	case protocol.CodeOf(err) == protocol.Unauthorized:
		toSignIn(w, r)
	case err != nil:
		s.Fail(w, r, err)
	default:
		s.writePrivate(w, r, o.Sent.status(), view{Title: tr(r.Context(), o.Page.title), Path: "/account", Body: o.Page.body(o)})
	}
}

// operatorForm does what a form is for, and redirects to the page, which offers to undo it.
func (s *Web) operatorForm(w http.ResponseWriter, r *http.Request, p operatorPage) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	f := newSent(r.PostForm)
	op := protocol.Lookup(f.do)
	if op == nil || !slices.Contains(p.forms, op) {
		s.Fail(w, r, protocol.Errorf(protocol.InvalidRequest, "there is no such form here"))
		return
	}
	var made struct {
		ID string `json:"id"`
	}
	var into any
	var opened protocol.OpenedAccount
	switch op {
	case protocol.OpenAccount.Operation:
		into = &opened
	case protocol.MakeSignInLink.Operation, protocol.MakeArchiveLink.Operation: // which have the same form
		into = &opened.SignIn
	}
	if op == protocol.AddBlock.Operation || op == protocol.AddNote.Operation {
		into = &made
	}
	err := s.invokeSignedIn(r, op, inputOf(op, r.PostForm), into)
	if err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
		if protocol.CodeOf(err) == protocol.Unauthorized {
			s.refusedPage(w, r, f)
			return
		}
		s.showOperator(w, r, &operatorView{Page: p, Sent: f})
		return
	}
	if opened.SignIn.URL != "" { // no address may hold it
		s.showOperator(w, r, &operatorView{Page: p, Done: operatorDone[op.Name].text, SignIn: &opened.SignIn})
		return
	}
	back := r.URL.Query()
	back.Set("done", op.Name)
	back.Del("of")
	if name := operatorDone[op.Name].name; made.ID != "" {
		back.Set("of", made.ID)
	} else if name != "" {
		back.Set("of", r.PostForm.Get(name))
	}
	redirect(w, r, p.path+"?"+back.Encode())
}

// sent returns the refused form if it is one of the named operations on the same thing, otherwise nil.
func (o *operatorView) sent(id string, ops ...string) *sent {
	if f := o.Sent; f != nil && slices.Contains(ops, f.do) && f.values.Get("at") == id {
		return f
	}
	return nil
}

// here is the address to which the forms of a page are sent: it keeps the selection of the list.
func (o *operatorView) here() string {
	if o.Form == nil {
		return o.Page.path
	}
	return o.Page.path + o.Form.selection()
}

// fill reads what the page shows.
func (o *operatorView) fill(s *Web, r *http.Request) error {
	o.answers = answers{}
	if o.Page.read != nil {
		if err := o.Page.read(o, s, r); err != nil {
			return err
		}
	}
	for _, op := range o.Page.shows {
		if err := o.ask(s, r, op, map[string]any{}); err != nil {
			return err
		}
	}
	if o.Page.list == nil || o.Page.list == protocol.TracePayment.Operation {
		return nil
	}
	err := o.ask(s, r, o.Page.list, o.Form.args)
	o.Next = o.Form.next(o.Page.path, o.next(o.Page.list))
	return err
}

func (o *operatorView) readQueue(*Web, *http.Request) error {
	if o.Form.get("state") == "" {
		o.Form.args["state"] = string(protocol.ReviewWaiting)
	}
	return nil
}

func (o *operatorView) readNumbers(s *Web, r *http.Request) error {
	for _, x := range []struct {
		span string
		into *protocol.Traffic
	}{{"day", &o.Day}, {"month", &o.Month}} {
		if err := s.invokeSignedIn(r, protocol.ReadTraffic.Operation, protocol.TrafficQuery{Span: x.span}, x.into); err != nil {
			return err
		}
	}
	return nil
}

func (o *operatorView) readAudit(s *Web, r *http.Request) error {
	o.Names = map[string]string{"operator": "stoa admin"}
	err := o.ask(s, r, protocol.ListAccounts.Operation, map[string]any{"limit": protocol.MaxLimit})
	for _, a := range answer(o, protocol.ListAccounts).Items {
		o.Names[a.ID] = a.Name
	}
	return err
}

// choices are links that select a part of a list. Each is a value and its word.
func choices(o *operatorView, name, label string, options [][2]string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return crumbs(label, choiceCrumbs(ctx, options, o.Form.get(name), func(value string) string { return o.with(name, value) })...)
	})
}

// nodeMark says on the index what needs an operator.
func nodeMark(h protocol.Health, path string) templ.Component {
	n, class, key := 0, "bad", ""
	switch path {
	case nodePath + "/queue":
		n, class, key = h.Review, "fresh", english("%d waiting##posts")
	case nodePath + "/complaints":
		n, key = h.Overdue, english("%d overdue##complaints")
	case nodePath + "/peers":
		n, class, key = failingPeers(h), "fair", english("%d failing##peers")
	case nodePath + "/jobs":
		n, key = deadJobs(h), english("%d given up##jobs")
	case nodePath + "/health":
		n, key = len(troubles(h))+h.CheckUp.Count(protocol.CheckFault), english("%d to look at")
	}
	return when(n > 0, worded(class, key, n))
}

// maybe shows a moment, if there is one, after a word.
func maybe(label string, at *time.Time) templ.Component {
	return optional(at, func(at time.Time) templ.Component { return inside("span", sayKey(label), moment(at)) })
}
