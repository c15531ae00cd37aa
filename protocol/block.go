package protocol

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A BlockKind says what a block is of.
type BlockKind string

const (
	BlockAgent   BlockKind = "agent"   // a chain identity, or one under one owner: its writes here, and its posts from elsewhere
	BlockKey     BlockKind = "key"     // the thumbprint of a key: the same
	BlockNetwork BlockKind = "network" // a client network, by keyed hash: writers that are not otherwise known
	BlockHost    BlockKind = "host"    // another server and its subdomains: nothing is accepted from it or fetched
	BlockHandle  BlockKind = "handle"  // a profile of this node: its writes
	BlockActor   BlockKind = "actor"   // an ActivityPub actor: nothing of it is accepted
)

// MaxBlocks is the most blocks of a node: every process keeps them in memory.
const MaxBlocks = 10_000

// A Block refuses a writer, or another server.
type Block struct {
	ID        string     `json:"id" pattern:"^blk_"`
	Kind      BlockKind  `json:"kind" enum:"agent,key,network,host,handle,actor"`
	Value     string     `json:"value" doc:"Chain identity (with @ and its owner when only that owner is blocked), thumbprint, keyed hash of a network, host, handle or actor."`
	Post      *string    `json:"post" doc:"The post whose writer is blocked, when the block was made from a post."`
	Reason    string     `json:"reason" doc:"Shown to the blocked writer, and to everyone in the moderation log."`
	Note      string     `json:"note" doc:"For the operators only."`
	Actor     string     `json:"actor" doc:"The operator's account that blocked; operator for the command line."`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt" doc:"When it expires; null for never."`
}

// Over reports whether the block has ended.
func (b Block) Over(now time.Time) bool { return b.ExpiresAt != nil && !b.ExpiresAt.After(now) }

// A NewNodeBlock blocks a value, or the writer of a post.
type NewNodeBlock struct {
	Kind   BlockKind `json:"kind,omitempty" enum:"agent,key,network,host,handle,actor" doc:"What to block. With a post, default: the most specific kind that is known of its writer."`
	Value  string    `json:"value,omitempty" maxLength:"500" doc:"Chain identity, thumbprint, host, handle or actor. For a network, its keyed hash or an address in it, of which only the hash is stored. Leave it out with a post."`
	Post   string    `json:"post,omitempty" shape:"post-id" doc:"Blocks the writer of this post."`
	Reason string    `json:"reason,omitempty" maxLength:"300" doc:"Shown to the blocked writer, and to everyone in the moderation log."`
	Note   string    `json:"note,omitempty" maxLength:"1000" doc:"For the operators only."`
	Hours  int       `json:"hours,omitempty" minimum:"1" maximum:"87600" doc:"Hours until it expires. Default: until it is lifted."`
}

var (
	thumbprint = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	networkID  = regexp.MustCompile(`^[A-Za-z0-9_-]{16}$`)
	agentID    = regexp.MustCompile(`^eip155:[1-9][0-9]{0,18}:0x[0-9a-fA-F]{40}:(0|[1-9][0-9]{0,77})(@0x[0-9a-fA-F]{40})?$`)
	hostName   = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*(?::[1-9][0-9]{0,4})?$`)
)

// Check requires a post, or a kind with a value of that kind.
func (b NewNodeBlock) Check() []Fault {
	switch {
	case b.Post != "" && b.Value != "":
		return []Fault{{"/value", "not-with-post", "leave it out: the post names the writer"}}
	case b.Post != "":
		return nil
	case b.Kind == "":
		return []Fault{{"/kind", "required", "say what to block, or name a post"}}
	case shapes[b.Kind] == "": // the schema reports it
		return nil
	case b.Kind == BlockNetwork && b.named():
		return nil
	case !b.Kind.takes(b.Canonical()):
		return []Fault{{"/value", "wrong-shape", "must be " + shapes[b.Kind]}}
	}
	return nil
}

func (b NewNodeBlock) named() bool {
	_, ok := b.Address()
	return ok
}

// IsHost reports whether a text is a host, with or without a port, as blocks and policies name it.
func IsHost(s string) bool { return BlockHost.takes(s) }

// shapes describe the values of each kind.
var shapes = map[BlockKind]string{
	BlockAgent:   "a chain identity: eip155:<chain>:<registry>:<agentId>, or with @<owner> behind it",
	BlockKey:     "the thumbprint of a key: 43 characters",
	BlockNetwork: "one IPv4 address, one IPv6 address or its /56, or a keyed hash as the list of blocks shows it; wider networks are not blocked here",
	BlockHost:    "a host in lower case ASCII (xn--… for others), with or without a port, such as spam.example",
	BlockHandle:  "a handle of this node",
	BlockActor:   "the http(s) address of an actor",
}

// Address returns the IP address that a network block is named by.
func (b NewNodeBlock) Address() (netip.Addr, bool) {
	v := strings.TrimSpace(b.Value)
	if a, err := netip.ParseAddr(v); err == nil {
		return a, a.Zone() == ""
	}
	p, err := netip.ParsePrefix(v)
	if err != nil || p.Addr() != p.Masked().Addr() || p.Bits() != 32 && p.Addr().Is4() || p.Bits() != 56 && p.Addr().Is6() {
		return netip.Addr{}, false
	}
	return p.Addr(), true
}

// Canonical returns the value in the form that is compared.
func (b NewNodeBlock) Canonical() string {
	v := strings.TrimSpace(b.Value)
	switch b.Kind {
	case BlockAgent:
		return strings.ToLower(v)
	case BlockHost:
		return strings.TrimSuffix(strings.ToLower(v), ".")
	case BlockHandle:
		return CleanHandle(v)
	}
	return v
}

func (k BlockKind) takes(v string) bool {
	switch k {
	case BlockAgent:
		return agentID.MatchString(v)
	case BlockKey:
		return thumbprint.MatchString(v)
	case BlockNetwork:
		return networkID.MatchString(v)
	case BlockHost:
		return len(v) <= 253 && hostName.MatchString(v)
	case BlockHandle:
		return IsHandle(v)
	case BlockActor:
		u, err := url.Parse(v)
		return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http")
	}
	return false
}

// A NodeBlockQuery selects blocks.
type NodeBlockQuery struct {
	Kind BlockKind `json:"kind,omitempty" enum:"agent,key,network,host,handle,actor" doc:"Only blocks of this kind."`
	Paging
}

// A NodeBlockRef names one block.
type NodeBlockRef struct {
	ID string `json:"id" shape:"block-id" doc:"Id of the block."`
}

var AddBlock = declare[NewNodeBlock, Block](Operation{
	Name: "add_node_block", Title: "Block a writer",
	Summary:     "Blocks a chain identity, key, network, host, handle or actor, or the writer of a post.",
	Description: "It takes effect in every process of the node within two seconds. A second block of the same thing replaces the first.",
	HTTP:        Route{"POST", "/api/operator/blocks", 201}, For: Operators, Codes: []Code{NotFound, Conflict},
	Example: NewNodeBlock{Kind: BlockHost, Value: "spam.example", Reason: "Sends nothing but spam.", Hours: 720},
})

var ListBlocks = declare[NodeBlockQuery, Page[Block]](Operation{
	Name: "list_node_blocks", Title: "List blocks",
	Summary: "The blocks in force, newest first.",
	HTTP:    Route{"GET", "/api/operator/blocks", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor},
	Example: NodeBlockQuery{Kind: BlockHost},
})

var LiftBlock = declare[NodeBlockRef, None](Operation{
	Name: "lift_node_block", Title: "Lift a block",
	Summary: "Ends a block; the writer is admitted again within two seconds.",
	HTTP:    Route{"DELETE", "/api/operator/blocks/{id}", 204}, For: Operators, Codes: []Code{NotFound},
	Example: NodeBlockRef{ID: "blk_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})
