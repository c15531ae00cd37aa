package protocol

import (
	"io"
	"time"
)

// Everything of one profile in one file, to keep or to move to another node.

// ArchiveFormat is the format and its version, as the manifest names it.
const ArchiveFormat = "stoa.archive/v1"

// MaxArchiveUpload is the size limit, in bytes, of an archive that is uploaded over HTTP; the
// operator's command line accepts larger ones.
const MaxArchiveUpload = 64 << 20

// PassphraseHeader carries the passphrase of an archive that is the body of a request. It is a
// header because addresses are written to logs.
const PassphraseHeader = "Archive-Passphrase"

// A File is the result of an operation that is bytes to save, not text to read. The door that
// asked for it reads and closes it.
type File interface {
	io.ReadCloser
	Size() int64
	Name() string // suggested file name
}

// An ExportRequest asks for the archive of a profile.
type ExportRequest struct {
	Owned
	Passphrase string `json:"passphrase,omitempty" minLength:"12" maxLength:"128" shape:"passphrase" doc:"Puts the private keys that the node keeps for the profile into the archive, encrypted under this passphrase (age, scrypt). Left out: they stay out. It takes the scope keys."`
}

var ExportArchive = declare[ExportRequest, File](Operation{
	Name: "export_archive", Title: "Export everything",
	Summary: "Exports everything of a profile of yours as one archive, a gzip-compressed tar of JSON that another node can import.",
	Description: "The format is " + ArchiveFormat +
		", a snapshot of one moment. It does not contain tokens, sessions and the account; private keys only encrypted, " +
		"and only when a passphrase is given.",
	HTTP: Route{"POST", "/api/owner/export", 200}, Doors: HTTP, For: Owners, Media: "application/gzip", Scope: ScopeArchive, ReadOnly: true,
	Codes: []Code{Forbidden}, Example: ExportRequest{Owned: Owned{"asha"}},
})

// An ArchiveLink is a page that downloads the archive of a profile, without signing in.
type ArchiveLink struct {
	URL       string    `json:"url" format:"uri" doc:"For the person whose profile it is. Shown once."`
	ExpiresAt time.Time `json:"expiresAt" doc:"In seven days. It ends sooner when the profile gets another account."`
}

var MakeArchiveLink = declare[HandleInput, ArchiveLink](Operation{
	Name: "make_archive_link", Title: "Make a link to the archive of a profile",
	Summary: "For a person who asks for the data of a profile and cannot sign in: a link to its archive, without keys. " +
		"The audit log says that it was made and used.",
	HTTP: Route{"POST", "/api/operator/profiles/{handle}/archive-link", 201}, For: Operators, Scope: ScopeAccount, OneTime: true, Codes: []Code{NotFound},
	Example: HandleInput{Handle: "asha"},
})

// An ArchiveTicket is the end of a link to an archive.
type ArchiveTicket struct {
	Ticket string `json:"ticket,omitempty" maxLength:"200" doc:"What the address has after ticket=; over HTTP send it as Authorization: Bearer."`
}

var FetchArchive = declare[ArchiveTicket, File](Operation{
	Name: "fetch_archive", Title: "Fetch an archive by its link",
	Summary: "The archive of a profile, by the link that an operator of the node gave to who asked for it.",
	HTTP:    Route{"POST", "/api/owner/archive", 200}, Doors: HTTP, For: Owners, Media: "application/gzip", Secret: "ticket", ReadOnly: true,
	Codes: []Code{Unauthorized, Gone}, Example: ArchiveTicket{},
})

// An ImportRequest is how to import the archive in the body.
type ImportRequest struct {
	As         string `json:"as,omitempty" shape:"handle" doc:"The handle on this node. Default: the archive's."`
	DryRun     bool   `json:"dryRun,omitempty" doc:"Change nothing; report what would happen."`
	Replace    bool   `json:"replace,omitempty" doc:"When the profile exists here: replace the profile, merchant record, notification and meeting settings by the archive's. Otherwise they stay, and only what is missing is added."`
	Passphrase string `json:"passphrase,omitempty" minLength:"12" maxLength:"128" shape:"passphrase" doc:"Decrypts the private keys in the archive. Over HTTP send it in the header Archive-Passphrase, never in the URL. Left out: they are not imported."`
}

// An ImportCount counts the outcomes for things of one kind.
type ImportCount struct {
	New     int `json:"new" doc:"Added."`
	Same    int `json:"same" doc:"Here already, and unchanged."`
	LeftOut int `json:"leftOut" doc:"Not imported; the notes say why."`
}

// An ImportReport is what an import did, or would do.
type ImportReport struct {
	Handle      string      `json:"handle" doc:"Of the profile here."`
	From        string      `json:"from" doc:"The node that made the archive, as the archive says."`
	ExportedAt  time.Time   `json:"exportedAt"`
	DryRun      bool        `json:"dryRun" doc:"Nothing was changed."`
	Profile     string      `json:"profile" enum:"created,replaced,kept"`
	Identity    string      `json:"identity" enum:"none,enrolled,kept,left-out" doc:"The on-chain identity: enrolled when the chain confirms a key whose private half is in the archive."`
	Keys        ImportCount `json:"keys"`
	PrivateKeys ImportCount `json:"privateKeys" doc:"Private halves that the node keeps from now on."`
	Posts       ImportCount `json:"posts"`
	Threads     ImportCount `json:"threads" doc:"With their messages; their read tokens stay valid."`
	Callbacks   ImportCount `json:"callbacks"`
	Blocks      ImportCount `json:"blocks"`
	Meetings    ImportCount `json:"meetings" doc:"Requests for meetings, as a record: one that waits, or is approved and not over, stays with the node that made the archive."`
	Bids        ImportCount `json:"bids" doc:"On the attention board. They are checked and never stored: money stays on the books of the node that took it. same: of this node."`
	Orders      ImportCount `json:"orders" doc:"Of the shop. Like bids, they are checked and never stored."`
	Receipts    ImportCount `json:"receipts" doc:"For orders. They stay receipts of the node that issued them."`
	Notes       []string    `json:"notes" doc:"What the owner should know."`
}

var ImportArchive = declare[ImportRequest, ImportReport](Operation{
	Name: "import_archive", Title: "Import an archive",
	Summary: "Imports a profile from an archive that a stoa node exported; the archive is the body.",
	Description: "The archive is checked completely before anything of it is stored, and an import that has begun is finished, even after a crash. " +
		"Importing it again changes nothing. A handle that belongs to another owner is refused; choose another with as. " +
		"Posts stay posts of the node that made them, and are accepted only when that node's signature on the archive verifies. " +
		"So are order receipts, each of which its issuer must also have signed. " +
		"Bids and orders stay with the node that took them. The attention board, the shop and meeting requests come closed, calendars without " +
		"passwords, and no payment account.",
	HTTP: Route{"POST", "/api/owner/import", 200}, Doors: HTTP, For: Owners, Upload: MaxArchiveUpload, UploadMedia: "application/gzip", Access: Session,
	Scope: ScopeArchive, Idempotent: true, OneTime: true, Codes: []Code{Forbidden, Conflict, TooLarge, UnsupportedMediaType},
	Example: ImportRequest{As: "asha", DryRun: true},
})
