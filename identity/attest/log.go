package attest

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/identity/tree"
	"stoa/protocol/activity"
)

// An Inclusion shows that the log of a board has an object as it is (FEDERATION.md, "A log is a tree").
type Inclusion struct {
	Epoch     string    `json:"epoch"`     // of the log
	Seq       int64     `json:"seq"`       // number of the entry
	Published time.Time `json:"published"` // time of the entry
	Type      string    `json:"type"`      // of the activity: Create or Update
	Content   string    `json:"content"`   // canonical JSON of what the entry says that the author wrote
	Salt      []byte    `json:"salt"`
	Proof     string    `json:"proof"` // C2SP tlog-proof@v1: the hashes from the leaf to the root, and the signed checkpoint
}

// logContent is what the content of an entry has of a post.
type logContent struct {
	ID        string   `json:"id"`
	InReplyTo string   `json:"inReplyTo"`
	Kind      string   `json:"stoa:kind"`
	Title     string   `json:"stoa:title"`
	Tags      []string `json:"stoa:tags"`
	Source    struct {
		Content string `json:"content"`
	} `json:"source"`
}

// log checks what the document shows of the node's log: that it has the object, or what its head is.
func (c *check) log() {
	switch {
	case c.Kind == KindLog:
		c.head()
	case c.doc.Log != nil:
		c.included(*c.doc.Log)
	}
}

func (c *check) head() {
	var h Head
	var at tree.Checkpoint
	err := strictjson.Decode(c.doc.Subject.Object, &h)
	if err == nil {
		at, err = c.signed(c.doc.Subject.ID, h.Epoch, func(origin string, pub ed25519.PublicKey) (tree.Checkpoint, error) {
			return tree.Open([]byte(h.Checkpoint), origin, pub)
		})
	}
	if err == nil && at.Size != h.Size {
		err = fmt.Errorf("the checkpoint is of %d entries", at.Size)
	}
	c.logged(err, "the checkpoint with its signature, and with the object", "C2SP tlog-checkpoint, PROOF.md §7.3", "%d entries of %s", at.Size, at.Origin)
}

func (c *check) included(l Inclusion) {
	var p Post
	var at tree.Checkpoint
	err := strictjson.Decode(c.doc.Subject.Object, &p)
	switch {
	case c.Kind != KindPost:
		err = fmt.Errorf("what is no post is in no log")
	case err == nil:
		err = l.is(c.doc.Subject.ID, p)
	}
	if err == nil {
		at, err = c.signed(p.Board, l.Epoch, func(origin string, pub ed25519.PublicKey) (tree.Checkpoint, error) {
			return tree.CheckProof(l.Proof, l.leaf(c.doc.Subject.ID), origin, pub)
		})
	}
	c.logged(err, "the entry and its content with the tree of the log, and with the object", "C2SP tlog-proof, PROOF.md §6",
		"entry %d of %d of %s", l.Seq, at.Size, at.Origin)
}

// logged adds the step of the log; it is open without the node's keys.
func (c *check) logged(err error, compared, section, format string, args ...any) {
	if errors.Is(err, errNoKeys) {
		c.add("log", Open, compared, section, "%s", err)
		return
	}
	c.judge("log", err, compared, section, format, args...)
}

var errNoKeys = errors.New("the key of the node was not given")

// signed returns what is found of the log of the node's board with one of the node's keys, those of checkpoints.
func (c *check) signed(board, epoch string, open func(origin string, pub ed25519.PublicKey) (tree.Checkpoint, error)) (at tree.Checkpoint, err error) {
	if !strings.HasPrefix(board, c.seen.Issuer+"/") {
		return at, fmt.Errorf("%s has no log at %s", c.seen.Issuer, board)
	}
	if len(c.Keys.Keys) == 0 {
		return at, errNoKeys
	}
	err = fmt.Errorf("the node has no Ed25519 key, which signs checkpoints")
	for _, k := range c.Keys.Keys {
		if pub, ok := k.Key.(ed25519.PublicKey); ok {
			if at, err = open(tree.Origin(board, epoch), pub); err == nil {
				break
			}
		}
	}
	return at, err
}

// is compares the content of the entry with the object.
func (l Inclusion) is(id string, p Post) error {
	var in logContent
	if err := strictjson.DecodeLoose([]byte(l.Content), &in); err != nil {
		return fmt.Errorf("the content of the entry: %w", err)
	}
	if in.ID != id || in.InReplyTo != p.InReplyTo || in.Kind != p.Kind || in.Title != p.Title || in.Source.Content != p.Body || !slices.Equal(in.Tags, p.Tags) {
		return fmt.Errorf("entry %d says something else than the object", l.Seq)
	}
	return nil
}

// leaf is the leaf of the entry of an object.
func (l Inclusion) leaf(id string) tree.Leaf {
	entry := activity.HashEntry(l.Epoch, l.Seq, l.Published, l.Type, id)
	return tree.Leaf{Seq: l.Seq, Entry: tree.ParseHash(entry), Content: tree.Salted(l.Salt, []byte(l.Content))}
}
