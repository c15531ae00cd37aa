package protocol

import (
	"io"
	"time"
)

// Everything of a profile in one file, to be kept or taken to another node.

// ArchiveFormat is the format and its version, as the manifest names it.
const ArchiveFormat = "stoa.archive/v1"

// MaxArchiveUpload is how many bytes an archive may have that comes over HTTP;
// the operator's command line takes larger ones.
const MaxArchiveUpload = 64 << 20

// PassphraseHeader carries the passphrase of an archive that is the body of a
// request. Addresses reach logs.
const PassphraseHeader = "Archive-Passphrase"

// A File is the result of an operation that is bytes to be kept, not text to be
// read. The door that asked for it reads and closes it.
type File interface {
	io.ReadCloser
	Size() int64
	Name() string // what to call it on disk
}

// An ExportRequest asks for the archive of a profile.
type ExportRequest struct {
	Owned
	Passphrase string `json:"passphrase,omitempty" minLength:"12" maxLength:"128" shape:"passphrase" doc:"Puts the private keys that the node keeps for the profile into the archive, encrypted under this passphrase (age, scrypt). Left out: they stay out. It takes the scope keys."`
}

var ExportArchive = declare[ExportRequest, File](Operation{
	Name: "export_archive", Title: "Export everything",
	Summary:     "Everything of a profile of yours as one archive, a gzip-compressed tar of JSON that another node can import.",
	Description: "The format is " + ArchiveFormat + ", of one moment. Tokens, sessions and the account are not in it; private keys only encrypted, and only where a passphrase is given.",
	HTTP:        Route{"POST", "/api/owner/export", 200}, Doors: HTTP, For: Owners, Media: "application/gzip",
	Access: Owner, Scope: ScopeArchive, ReadOnly: true, NoStore: true, Codes: []Code{Forbidden},
	Example: ExportRequest{Owned: Owned{"asha"}},
})

// An ImportRequest says what to do with the archive in the body.
type ImportRequest struct {
	As         string `json:"as,omitempty" shape:"handle" doc:"The handle to have here; the archive's own when left out."`
	DryRun     bool   `json:"dryRun,omitempty" doc:"Change nothing; say what would happen."`
	Replace    bool   `json:"replace,omitempty" doc:"Where you have the profile here already: put the archive's profile, merchant record and notification settings in place of it. Otherwise they stay, and only what is missing is added."`
	Passphrase string `json:"passphrase,omitempty" minLength:"12" maxLength:"128" shape:"passphrase" doc:"Opens the private keys in the archive. Over HTTP it travels in the header Archive-Passphrase, never in the URL. Left out: they are passed over."`
}

// An ImportCount says what became of the things of one kind.
type ImportCount struct {
	New     int `json:"new" doc:"Added."`
	Same    int `json:"same" doc:"Here already, and left as they are."`
	LeftOut int `json:"leftOut" doc:"Not taken; the notes say why."`
}

// An ImportReport says what an import did, or would do.
type ImportReport struct {
	Handle      string      `json:"handle" doc:"Of the profile here."`
	From        string      `json:"from" doc:"The node that made the archive, by its own word."`
	ExportedAt  time.Time   `json:"exportedAt"`
	DryRun      bool        `json:"dryRun" doc:"Nothing was changed."`
	Profile     string      `json:"profile" enum:"created,replaced,kept"`
	Identity    string      `json:"identity" enum:"none,enrolled,kept,left-out" doc:"The on-chain identity: enrolled when the chain vouches for a key whose private half came along."`
	Keys        ImportCount `json:"keys"`
	PrivateKeys ImportCount `json:"privateKeys" doc:"Private halves that the node keeps from now on."`
	Posts       ImportCount `json:"posts"`
	Threads     ImportCount `json:"threads" doc:"Each with its messages, and opened by the read token it had."`
	Callbacks   ImportCount `json:"callbacks"`
	Blocks      ImportCount `json:"blocks"`
	Notes       []string    `json:"notes" doc:"What the owner should know."`
}

var ImportArchive = declare[ImportRequest, ImportReport](Operation{
	Name: "import_archive", Title: "Import an archive",
	Summary:     "Bring a profile here from an archive that a node of this kind exported; the archive is the body.",
	Description: "The archive is checked whole before anything of it is stored, and what has begun is finished, also after a crash. Doing it again changes nothing more. A handle that is somebody else's is refused; take another with as. Posts stay posts of the node that made them, and are taken only when that node's signature on the archive verifies.",
	HTTP:        Route{"POST", "/api/owner/import", 200}, Doors: HTTP, For: Owners, Upload: MaxArchiveUpload, UploadMedia: "application/gzip",
	Access: Session, Scope: ScopeArchive, Idempotent: true, OneTime: true, Codes: []Code{Forbidden, Conflict, TooLarge, UnsupportedMediaType},
	Example: ImportRequest{As: "asha", DryRun: true},
})
