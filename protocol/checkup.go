package protocol

import (
	"slices"
	"time"

	"stoa/protocol/sorting"
)

// A CheckVerdict is what a check of a node came to.
type CheckVerdict string

const (
	CheckFault     CheckVerdict = "fault"     // something does not work
	CheckAttention CheckVerdict = "attention" // it works, and will not for ever
	CheckUnseen    CheckVerdict = "unseen"    // it could not be looked at, or is not set up
	CheckOK        CheckVerdict = "ok"
)

var verdicts = []CheckVerdict{CheckFault, CheckAttention, CheckUnseen, CheckOK}

// A Check is one thing that was looked at.
type Check struct {
	Name    string       `json:"name" doc:"What was looked at: dns, ports, clock, …"`
	How     string       `json:"how" doc:"How it is looked at."`
	Verdict CheckVerdict `json:"verdict" enum:"fault,attention,unseen,ok"`
	Code    string       `json:"code" doc:"Names what is wrong, such as dns-missing; empty for nothing."`
	What    string       `json:"what" doc:"What is wrong; empty for nothing."`
	Seen    string       `json:"seen" doc:"What was seen."`
	Mend    string       `json:"mend" doc:"What to do about it; empty for nothing."`
}

// A CheckUp is what the last look at a node found.
type CheckUp struct {
	At    time.Time `json:"at"`
	Items []Check   `json:"items" doc:"The worst first."`
}

// A CheckKind is a check that is made.
type CheckKind struct{ Name, Title, How string }

// CheckKinds are the checks of a node, in their order.
func CheckKinds() []CheckKind { return slices.Clone(checkKinds) }

var checkKinds = []CheckKind{
	{"database", "Database", "Opened with the settings, and asked for its version."},
	{"standbys", "Standbys", "Each in database-replica is asked how far it is behind the primary."},
	{"address", "Public address", "A request to it, which the node answers."},
	{"dns", "Name", "Looked up, and each of its addresses connected to."},
	{"ports", "Ports from outside", "Up to three peers connect to ports 443 and 80."},
	{"certificate", "Certificate", "The one that the public address shows."},
	{"host", "Host and path", "As they reach the node through the proxy."},
	{"forwarded", "Addresses of visitors", "X-Forwarded-For as it reaches the node, with one that is made up."},
	{"clock", "Clock", "Compared with the dates of peers, chain endpoints, the certificate authority and the database."},
	{"chain", "Chain endpoints", "Each is asked for its chain and its newest block."},
	{"mail", "Mail", "The DNS records SPF, DKIM and DMARC of its sender."},
	{"disk", "Disk", "Free space where the data and the backups are, and how the database grows."},
	{"backup", "Backup", "When the last one was made, and restored on trial."},
	{"master-key", "Copy of the master key", "The file that you named as a copy was compared with the key."},
	{"versions", "Versions", "Of the program, the running node, and its peers."},
	{"release", "Releases", "The signed checksums at the address in the setting releases."},
	{"traces", "Traces", "The collector is sent an empty request."},
}

// An Ailment is what a check can find wrong.
type Ailment struct {
	Code, Check string
	Verdict     CheckVerdict
	What, Mend  string
}

// Ailments are all that checks can find wrong.
func Ailments() []Ailment { return slices.Clone(ailments) }

var ailments = []Ailment{
	{"database-closed", "database", CheckFault, "The database cannot be opened.",
		"Give the settings that stoa serve has: --config, --data, --database. Does the database server run?"},
	{"standby-away", "standbys", CheckAttention, "A standby is not read: it does not answer, or is on another history than the primary.",
		"Is its server up, and does it replicate from this primary? If it is gone for good, take it out of database-replica, and restart."},
	{"standby-behind", "standbys", CheckAttention, "A standby is behind, so the primary answers in its place.",
		"Its log and disk say why. A long query on it holds up what it replays."},
	{"address-silent", "address", CheckFault, "The public address does not answer.",
		"Start stoa serve, and have the proxy lead to the address that it listens on."},
	{"address-other", "address", CheckFault, "Something else answers at the public address.",
		"Lead the name to this node. A proxy must pass on every path, and the node must have this database and master key."},
	{"dns-missing", "dns", CheckFault, "The name has no address.",
		"Add an A record with the public address of the machine, and an AAAA record if it has IPv6."},
	{"dns-private", "dns", CheckFault, "The name leads to an address that others cannot reach.",
		"Put the public address of the machine, or of the router in front of it, into the A and AAAA records."},
	{"dns-closed", "dns", CheckFault, "At an address of the name nothing answers.",
		"Delete the record of that address, or have the server listen there: for IPv6 on [::]:443. Visitors who try it first wait, or give up."},
	{"dns-silent", "dns", CheckAttention, "The DNS does not answer.",
		"Check the resolver of this machine (/etc/resolv.conf), and the name servers of the domain."},
	{"ports-closed", "ports", CheckFault, "Peers cannot reach the public address.",
		"Open port 443 in the firewalls of the machine and of its provider, and forward it in the router."},
	{"ports-differ", "ports", CheckAttention, "Some peers reach the public address, and others do not.",
		"Look at what the others have in common, such as IPv6, and look again in an hour."},
	{"ports-plain", "ports", CheckAttention, "Port 80 cannot be reached from outside.",
		"Open it: who types the name without https comes there, and the certificate authority may ask there."},
	{"ports-unasked", "ports", CheckUnseen, "No peer could be asked.", "Follow a node (stoa admin peer follow), then look again."},
	{"certificate-invalid", "certificate", CheckFault, "The certificate is not valid.",
		"Have the server show the whole chain of a certificate for this name. With the setting domain the node gets one; its log says why not."},
	{"certificate-expires", "certificate", CheckFault, "The certificate ends soon and was not renewed.",
		"The log of what renews it says why: the node with the setting domain, otherwise the proxy."},
	{"host-changed", "host", CheckFault, "The proxy changes Host or the path, so no signature is valid.",
		"Pass both on as they came. nginx: proxy_set_header Host $host, and proxy_pass without a path."},
	{"forwarded-missing", "forwarded", CheckFault, "The proxy does not say who its visitors are, so all of them share one limit.",
		"Have it set X-Forwarded-For. nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for."},
	{"forwarded-passed", "forwarded", CheckFault, "The proxy passes on the X-Forwarded-For that visitors make up, so limits and blocks do not hold.",
		"Have it add the address of the visitor, or replace the field. nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for."},
	{"forwarded-untrusted", "forwarded", CheckFault, "The proxy is not trusted, so all of its visitors share one limit.",
		"Name its network in the setting trusted-proxies, such as 127.0.0.0/8, and restart."},
	{"clock-wrong", "clock", CheckFault, "The clock is wrong: signatures are refused from 30 seconds on.",
		"Have the time set by NTP (timedatectl set-ntp true), or by the host of a virtual machine."},
	{"clock-drifts", "clock", CheckAttention, "The clock differs from that of others.", "Is the time set by NTP here (timedatectl)?"},
	{"clock-database", "clock", CheckFault, "The clock of the database server is another one.", "Have the time of both machines set by NTP."},
	{"clock-unasked", "clock", CheckUnseen, "There is nobody to compare it with.", "Follow a node (stoa admin peer follow), then look again."},
	{"chain-wrong", "chain", CheckFault, "An endpoint is of another chain.", "Correct the setting chain, and restart."},
	{"chain-silent", "chain", CheckFault, "No endpoint of a chain answers.",
		"Name one that does in the setting chain, and restart. Until then identities are not verified."},
	{"chain-endpoint", "chain", CheckAttention, "An endpoint of a chain does not answer.", "Others of the chain do. Replace it if it stays so."},
	{"chain-stuck", "chain", CheckFault, "An endpoint is behind its chain.", "Name another one in the setting chain, and restart."},
	{"mail-off", "mail", CheckUnseen, "No mail is sent.", "Set smtp and mail-from if owners should get sign-in links and notices by mail."},
	{"mail-spf", "mail", CheckFault, "The SPF record is missing or wrong.", "Add the record that stoa admin mail check prints."},
	{"mail-dkim", "mail", CheckFault, "The DKIM record is missing or wrong.", "Add the record that stoa admin mail check prints."},
	{"mail-unsigned", "mail", CheckAttention, "The node does not sign its mail.",
		"Make a key (stoa admin mail key FILE) and set dkim-key and dkim-selector, unless the mail server signs."},
	{"mail-dmarc", "mail", CheckFault, "The DMARC record is missing or wrong.", "Add the record that stoa admin mail check prints."},
	{"mail-dns", "mail", CheckUnseen, "The DNS did not answer for the sender of mail.", "Look again in a minute."},
	{"disk-full", "disk", CheckFault, "The disk is nearly full: then nothing can be written.",
		"Make room: files *.old of restores can be deleted, and old backups. Or move the data to a larger disk."},
	{"disk-low", "disk", CheckAttention, "There is little room on the disk.", "Make room for a copy of the database, or plan for a larger disk."},
	{"backup-none", "backup", CheckFault, "No backup is known.", "Name a place with the setting backup-dir: the node makes one each day."},
	{"backup-old", "backup", CheckFault, "The last backup is old.",
		"Make one each day: stoa admin backup FILE. If something makes them by itself, its log says why it stopped."},
	{"backup-failed", "backup", CheckFault, "The last try to make a backup failed.", "Mend what the message says. Is there room, and may the node write there?"},
	{"backup-untried", "backup", CheckAttention, "The last backup was not restored on trial.",
		"Restore it on trial: stoa admin restore --check."},
	{"backup-unknown", "backup", CheckUnseen, "The node does not know of backups of this database.",
		"Name a place with the setting backup-dir: the node makes one each day."},
	{"key-uncopied", "master-key", CheckAttention, "No copy of the master key is known.",
		"Copy the file to another machine, then: ssh THERE cat FILE | stoa doctor --key-copied -. Without the key the database and its backups are of no use."},
	{"key-other", "master-key", CheckFault, "The copy that is known is not of this master key.",
		"Copy the present file, and have it compared: stoa doctor --key-copied FILE."},
	{"versions-restart", "versions", CheckAttention, "The running node is another version than this program.", "Restart it."},
	{"versions-behind", "versions", CheckAttention, "A peer runs a newer release.", "Read its CHANGELOG, back up, and upgrade."},
	{"release-newer", "release", CheckAttention, "There is a newer release.",
		"Read its CHANGELOG, try it on a copy (stoa admin migrate --dry-run), and replace the program."},
	{"release-unread", "release", CheckAttention, "It cannot be seen which release is the newest.",
		"Correct the settings releases and releases-key, and restart."},
	{"traces-refused", "traces", CheckAttention, "The collector does not take traces.",
		"Is it up? Correct the settings traces and traces-headers, and restart."},
}

// Passed is a check that found nothing wrong.
func Passed(name, seen string) Check {
	return Check{Name: name, How: kindOf(name).How, Verdict: CheckOK, Seen: seen}
}

// Found is a check that found what a code names.
func Found(code, seen string) Check {
	i := slices.IndexFunc(ailments, func(a Ailment) bool { return a.Code == code })
	if i < 0 {
		panic("protocol: no ailment " + code)
	}
	a := ailments[i]
	return Check{Name: a.Check, How: kindOf(a.Check).How, Verdict: a.Verdict, Code: code, What: a.What, Seen: seen, Mend: a.Mend}
}

// Unseen is a check that could not be made, and why.
func Unseen(name, why string) Check {
	return Check{Name: name, How: kindOf(name).How, Verdict: CheckUnseen, Seen: why}
}

func kindOf(name string) CheckKind {
	for _, k := range checkKinds {
		if k.Name == name {
			return k
		}
	}
	panic("protocol: no check " + name)
}

// NewCheckUp is what was found at a time: the worst first, otherwise in the order of the checks.
func NewCheckUp(at time.Time, items []Check) CheckUp {
	place := func(c Check) int {
		return slices.Index(verdicts, c.Verdict)*len(checkKinds) + slices.IndexFunc(checkKinds, func(k CheckKind) bool { return k.Name == c.Name })
	}
	items = slices.Clone(items)
	sorting.Stable(items, func(a, b Check) int { return place(a) - place(b) })
	return CheckUp{At: at.UTC().Truncate(time.Second), Items: items}
}

// Count is how many checks came to a verdict.
func (c *CheckUp) Count(v CheckVerdict) (n int) {
	if c == nil {
		return 0
	}
	for _, one := range c.Items {
		if one.Verdict == v {
			n++
		}
	}
	return n
}

// LookAgain has the node examine itself.
var LookAgain = declare[None, None](Operation{
	Name: "look_again", Title: "Look at the node again",
	Summary: "Examines the node now: name, ports, clock, proxy, chains, mail, disk, backup; read_health has the result within a minute.",
	HTTP:    Route{"POST", "/api/operator/health/look", 204}, For: Operators, Example: None{},
})

// A Sight is what a node sees of the public address of another one that asked it: a word each, "ok" or why not.
type Sight struct {
	Document string `json:"document"` // its actor, over https
	IPv4     string `json:"ipv4"`     // a connection to port 443
	IPv6     string `json:"ipv6"`
	Plain4   string `json:"plain4"` // and to port 80
	Plain6   string `json:"plain6"`
}

// Words of a Sight.
const (
	SightOK          = "ok"
	SightNone        = "none"        // the name has no such address
	SightRefused     = "refused"     // nothing listens
	SightTimeout     = "timeout"     // no answer
	SightUnreachable = "unreachable" // who looked has no way there, such as no IPv6
	SightCertificate = "certificate" // the certificate is not valid
	SightFailed      = "failed"
)
