package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

// A trouble is something that an operator should look at, and what to do. Each has its row in the table
// "What to do when …" of docs/OPERATIONS.md.
type trouble struct {
	what   string // key of a text
	n      int    // its number, 0 for none
	detail string // in the words of what failed
	do     string // key of what to do
	path   string // of the page where that is done, "" for none
}

const (
	slowQueue = 512              // writes that wait: half of the queue
	staleHead = 10 * time.Minute // of a chain, at its last look
	oldBackup = 8 * 24 * time.Hour
	fullStock = 95 // percent of its cap
)

// troubles lists what to look at, the worst first.
func troubles(h protocol.Health) (all []trouble) {
	for _, c := range h.Chains {
		switch {
		case c.Trouble != "":
			all = append(all, trouble{what: english("A chain cannot be read"), detail: "eip155:" + strconv.FormatUint(c.ChainID, 10) + ": " + c.Trouble,
				do: english("Check the endpoint in the setting chain. Until it answers, signatures of its identities are refused, and nothing else.")})
		case c.BlockAt != nil && c.LookedAt != nil && c.LookedAt.Sub(*c.BlockAt) > staleHead:
			all = append(all, trouble{what: english("A chain endpoint is behind"), detail: "eip155:" + strconv.FormatUint(c.ChainID, 10),
				do: english("Choose another endpoint in the setting chain, and restart.")})
		}
	}
	all = append(all, logTroubles(h)...)
	if h.Overdue > 0 {
		all = append(all, trouble{what: english("Complaints that are overdue: %d"), n: h.Overdue, path: nodePath + "/complaints",
			do: english("Acknowledge or answer them: the law may set the dates.")})
	}
	if n := deadJobs(h); n > 0 {
		all = append(all, trouble{what: english("Jobs were given up: %d"), n: n, path: nodePath + "/jobs",
			do: english("Read why, mend the cause, then try each again or delete it.")})
	}
	if h.Waiting > slowQueue {
		all = append(all, trouble{what: english("Writes that wait: %d"), n: h.Waiting,
			do: english("Is the disk slow, or another process holding the SQLite file? At 1024 writes are refused.")})
	}
	if h.Mail.Retrying > 0 {
		all = append(all, trouble{what: english("Letters that could not be sent yet: %d"), n: h.Mail.Retrying, detail: h.Mail.LastError,
			do: english("Check the mail server: stoa admin mail check. A letter is tried for a day, a sign-in link for 25 minutes.")})
	}
	if h.Payments.Retrying > 0 {
		all = append(all, trouble{what: english("Requests to payment providers that failed: %d"), n: h.Payments.Retrying, detail: h.Payments.LastError,
			do: english("They are tried again. If it stays, the owner of the account should check its keys.")})
	}
	if n := failingPeers(h); n > 0 {
		all = append(all, trouble{what: english("Servers that do not take deliveries: %d"), n: n, path: nodePath + "/peers",
			do: english("They are tried again for good, and catch up by themselves.")})
	}
	for _, s := range h.Stocks {
		if used(s) >= fullStock {
			all = append(all, trouble{what: english("Storage is at its cap"), detail: s.Name,
				do: english("The oldest rows go first, and peers last. If it stays full, find who fills it and block that server.")})
		}
	}
	return append(all, backupTroubles(h)...)
}

// backupTroubles are missing, old, failing and untried backups.
func backupTroubles(h protocol.Health) (all []trouble) {
	if h.CheckUp != nil { // which says so
		return nil
	}
	b, byItself := h.Backup, h.Backup.Place != ""
	switch {
	case b.LastError != "":
		all = append(all, trouble{what: english("The last try to make a backup failed"), detail: b.LastError,
			do: english("Mend the cause; it is tried again by itself, and at once by stoa admin backup. Backups of before are kept.")})
	case h.BackupAt == nil && !byItself && h.Engine == "sqlite":
		all = append(all, trouble{what: english("No backup is known"), do: english("Name a place with the setting backup-dir: the node makes one each day.")})
	}
	switch {
	case h.BackupAt != nil && h.At.Sub(*h.BackupAt) > oldBackup:
		all = append(all, trouble{what: english("The last backup is more than a week old"),
			do: english("Name a place with the setting backup-dir: the node makes one each day.")})
	case byItself && b.CheckedAt != nil && h.At.Sub(*b.CheckedAt) > oldBackup:
		all = append(all, trouble{what: english("No backup was restored on trial for more than a week"),
			do: english("Read the log, and run stoa admin backup.")})
	}
	return all
}

// checkMarks are the marks of verdicts.
var checkMarks = map[protocol.CheckVerdict]struct{ class, word string }{
	protocol.CheckFault: {"bad", english("At fault##check")}, protocol.CheckAttention: {"fair", english("Look at it##check")},
	protocol.CheckUnseen: {"", english("Not looked at##check")}, protocol.CheckOK: {"good", english("In order##check")},
}

// checkTitle is the key of what a check is about, its name when a newer program made it.
func checkTitle(c protocol.Check) string {
	for _, k := range protocol.CheckKinds() {
		if k.Name == c.Name {
			return k.Title
		}
	}
	return c.Name
}

// logTroubles are logs that contradict themselves: those of followed boards, and this node's own as others saw it.
func logTroubles(h protocol.Health) (all []trouble) {
	if h.Conflicts > 0 {
		all = append(all, trouble{what: english("Followed logs that contradict themselves: %d"), n: h.Conflicts, path: nodePath + "/peers",
			do: english("Ask the operator of that node. When the cause is known, read the log again, or stop following it.")})
	}
	if h.Reported > 0 {
		all = append(all, trouble{what: english("Nodes that report that our log contradicts itself: %d"), n: h.Reported, path: nodePath + "/peers",
			do: english("Was an old copy of the data put back without stoa admin restore? Then run stoa admin new-epoch.")})
	}
	return all
}

// used returns how much of its cap a stock uses, in percent.
func used(s protocol.StockUse) int {
	rows, bytes := 0, 0
	if s.MaxRows > 0 {
		rows = s.Rows * 100 / s.MaxRows
	}
	if s.MaxBytes > 0 {
		bytes = int(s.Bytes * 100 / s.MaxBytes)
	}
	return max(rows, bytes)
}

// byUse sorts stocks by how full they are, the fullest first.
func byUse(all []protocol.StockUse) []protocol.StockUse {
	all = slices.Clone(all)
	sorting.Stable(all, func(a, b protocol.StockUse) int { return cmp.Compare(used(b), used(a)) })
	return all
}

// stockWords say what a stock holds.
var stockWords = map[string]string{
	"actors": english("Actors of other servers"), "keys": english("Keys of other servers"), "tombstones": english("Deletions of posts that are not here"),
	"schemes": english("Signature schemes of servers"), "kept": english("Activities that were processed"), "told": english("Audit entries that servers caused"),
	"jobs": english("Jobs that ended"), "readers": english("Servers that fetched posts"), "issued": english("Issue times of chain keys"),
	"bids": english("Bids that were never paid"), "pay events": english("Events of payment providers"), "meetings": english("Meeting requests that are over"),
	"mailboxes": english("Mailboxes that were asked"), "stopped": english("Mailboxes that want no mail"),
	"reactions": english("Reactions to posts"), "blocked by": english("Agents that others block"), "checkouts": english("Checkouts that hold nothing"),
	"refusals": english("Refused posts of other servers"), "devices": english("Browsers of visitors that are notified"),
	"proofs": english("Chain proofs of identities"), "delegated": english("Keys that accounts delegated to"), "moves": english("Changes of owner of identities"),
	"documents": english("Documents of identities"), "twins": english("Links between identities"),
}

// stockWord returns the words for a stock, its name when there are none.
func stockWord(name string) string { return cmp.Or(stockWords[name], name) }

// spanText returns a time in days and hours, or in minutes when it is short.
func spanText(d time.Duration) (key string, n int) {
	switch {
	case d >= 48*time.Hour:
		return english("%d days##uptime"), int(d / (24 * time.Hour))
	case d >= 2*time.Hour:
		return english("%d hours##uptime"), int(d / time.Hour)
	}
	return english("%d minutes##uptime"), int(d / time.Minute)
}

func troubleText(ctx context.Context, t trouble) string {
	if t.n > 0 {
		return tr(ctx, t.what, t.n)
	}
	return tr(ctx, t.what)
}

func uptime(ctx context.Context, h protocol.Health) string {
	key, n := spanText(h.At.Sub(h.StartedAt))
	return tr(ctx, key, n)
}

func mailText(ctx context.Context, m protocol.MailHealth) string {
	switch m.State {
	case "off":
		return tr(ctx, "None is sent.")
	case "log":
		return tr(ctx, "Letters are only written to the log.")
	}
	return tr(ctx, "Sent; letters that wait: %d", m.Waiting)
}

var peerWords = map[string]string{
	"active": english("Servers that take deliveries"), "slow": english("Servers that fail"), "dead": english("Servers that failed for a week"),
}

// jobState is the state of those jobs of a kind that an operator would look at first.
func jobState(j protocol.JobHealth) string {
	if j.Dead > 0 {
		return "dead"
	}
	return "waiting"
}

var jobStates = [][2]string{{"", english("Given up##jobs")}, {"waiting", english("Waiting##jobs")}, {"done", english("Done##jobs")}}

func nodeFact(label, value string, technical bool) templ.Component {
	if technical {
		return row(label, in(`span translate="no"`, value))
	}
	return row(label, put(value))
}
