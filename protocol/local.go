package protocol

import (
	"slices"
	"time"
)

// What only the operator on the machine does (stoa admin): operations without a
// door, which no document lists.

var locals []*Operation

// local declares an operation without a door.
func local[In, Out any](o Operation) Op[In, Out] {
	o.Local, o.For, o.Access = true, Operators, Operator
	op := typed[In, Out](o)
	locals = append(locals, op.Operation)
	return op
}

// LocalOperations returns the operations without a door.
func LocalOperations() []*Operation { return slices.Clone(locals) }

// An EnrolledIdentity names a chain identity, eip155:<chainId>:<registry>:<agentId>.
type EnrolledIdentity struct {
	ERC8004 string `json:"erc8004,omitempty"`
}

// A ProfileFile is a profile as the operator writes it. Identity must be the one that
// the profile is enrolled to already; without, the enrolment stays.
type ProfileFile struct {
	OwnProfile
	Identity EnrolledIdentity `json:"identity,omitzero"`
}

// A WrittenProfile says what became of a profile.
type WrittenProfile struct {
	Created bool   `json:"created"` // else replaced
	Profile string `json:"profile"` // address
}

// PutProfile creates or replaces a profile.
var PutProfile = local[ProfileFile, WrittenProfile](Operation{Name: "put_profile"})

// DropProfile deletes a profile at once; its posts stay.
var DropProfile = local[HandleInput, None](Operation{Name: "drop_profile"})

// A PrivateKey is a JWK with its private half, as JSON text.
type PrivateKey struct {
	Owned
	JWK string `json:"jwk" maxLength:"8192"`
}

// KeepKey registers a key with a profile. The node keeps the private half, sealed,
// and signs with it.
var KeepKey = local[PrivateKey, Key](Operation{Name: "keep_key"})

// A SignedDirectory is the key directory that the owner of a key signed, as JSON text.
type SignedDirectory struct {
	KeyID     string `json:"keyid" doc:"RFC 7638 thumbprint of the key."`
	Directory string `json:"directory" maxLength:"65536"`
}

// PutKeyDirectory stores a signed key directory, for the node to serve until its
// signature runs out.
var PutKeyDirectory = local[SignedDirectory, None](Operation{Name: "put_key_directory"})

// A NodeKeyRotation says when the node's next key begins, and how long the present one is taken beside it.
type NodeKeyRotation struct {
	InHours     int `json:"inHours" minimum:"0" maximum:"720"`
	OverlapDays int `json:"overlapDays" minimum:"0" maximum:"400"`
}

// A NodeKey is an Ed25519 key of the node.
type NodeKey struct {
	KeyID string     `json:"keyid"` // RFC 7638 thumbprint
	From  *time.Time `json:"from"`  // nil: from the beginning
	Until *time.Time `json:"until"` // nil: it has no end yet
	Ended bool       `json:"ended"`
	Signs bool       `json:"signs"` // a process that starts now signs with it
}

// NodeKeys are those of the node, the oldest first.
type NodeKeys struct {
	Items []NodeKey `json:"items"`
}

// ListNodeKeys lists the Ed25519 keys of the node.
var ListNodeKeys = local[None, NodeKeys](Operation{Name: "list_node_keys", ReadOnly: true})

// RotateNodeKey makes the node's next keys, and gives the present Ed25519 key its end; with neither hours nor days every one ends now.
// conflict while one waits for its time, unless all end.
var RotateNodeKey = local[NodeKeyRotation, NodeKeys](Operation{Name: "rotate_node_key"})

// A NewEnrolment names a profile, a chain identity and the key that speaks for it.
type NewEnrolment struct {
	HandleInput
	ERC8004 string `json:"erc8004"`
	KeyID   string `json:"keyid" doc:"RFC 7638 thumbprint of the key, which the chain names."`
}

// EnrolIdentity asks the chain whether the key speaks for the identity, and enrols it
// for the profile with the owner and wallet that the chain names. A key that the
// profile does not have is registered as the chain has it.
var EnrolIdentity = local[NewEnrolment, None](Operation{Name: "enrol_identity"})

// A Registry is a registry of chain identities, eip155:<chainId>:<address>.
type Registry struct {
	Registry string `json:"registry"`
}

// RenewEnrolments makes the enrolments of a registry again at the node's next look
// at the chain, by what the chain says then. It is for a chain that makes other blocks
// at each start, which would end them.
var RenewEnrolments = local[Registry, None](Operation{Name: "renew_enrolments"})

// A ProfileLink is a profile and the account that it is to belong to.
type ProfileLink struct {
	HandleInput
	Account string `json:"account" doc:"Id of the account."`
}

// LinkProfile gives a profile to an account, and takes it from the one that had it.
var LinkProfile = local[ProfileLink, None](Operation{Name: "link_profile"})

// UnlinkProfile takes a profile from its account, with the tokens for it.
var UnlinkProfile = local[HandleInput, None](Operation{Name: "unlink_profile"})

// A RoleChange is an account and its new role.
type RoleChange struct {
	AccountRef
	Role Role `json:"role" enum:"owner,operator"`
}

// An OperatorLinkOrder asks for the link that makes the first operator.
type OperatorLinkOrder struct {
	Keep bool `json:"keep,omitempty"` // a link that is still good stays, and none is made
}

// OperatorLinkLife is how long that link is good.
const OperatorLinkLife = 24 * time.Hour

// MakeOperatorLink makes the link that makes the first operator, once, and ends those before it. The URL is "" where a link stays. conflict when
// there is an operator.
var MakeOperatorLink = local[OperatorLinkOrder, SignInLink](Operation{Name: "make_operator_link"})

// A MailChange is an account and the address that the operator vouches for.
type MailChange struct {
	AccountRef
	AccountMailDraft
}

// SetAccountMail sets the address that sign-in links go to; the former one is told.
var SetAccountMail = local[MailChange, AccountMail](Operation{Name: "set_account_mail"})

// SignedOut says how many sessions ended.
type SignedOut struct {
	Ended int `json:"ended"`
}

// A SignOutDraft names an account, and how much of what signs in to it ends.
type SignOutDraft struct {
	AccountRef
	Forget bool `json:"forget,omitempty" doc:"Passkeys and recovery codes are deleted too."`
}

// A TokenGrant is a token to be made: for the profile in Handle and the account that
// it belongs to, which is opened when there is none, else for every profile of Account.
type TokenGrant struct {
	NewToken
	Account  string        `json:"account,omitempty" doc:"Id of the account."`
	Lifetime time.Duration `json:"lifetime,omitempty" minimum:"0" doc:"Nanoseconds it lives; 0 until it is revoked."`
}

// GrantToken makes an API token.
var GrantToken = local[TokenGrant, MadeToken](Operation{Name: "grant_token", OneTime: true})

// TokensOf lists the API tokens that are for one profile, or those of an account.
var TokensOf = local[AccountRef, Page[Token]](Operation{Name: "tokens_of", ReadOnly: true})

// An ImportOrder is an import on the operator's word.
type ImportOrder struct {
	ImportRequest
	Account string `json:"account,omitempty" doc:"Whom a new profile belongs to: an account's id, or a profile of it."`
	Vouch   bool   `json:"vouch,omitempty" doc:"The archive is the profile's, and of the node that it names."`
}

// ImportFor brings a profile here from an archive in a file.
var ImportFor = local[ImportOrder, ImportReport](Operation{Name: "import_for"})

// NewEpoch has the followers of the board walk its log again. It is for a database
// that was restored from a backup.
var NewEpoch = local[None, None](Operation{Name: "new_epoch"})
