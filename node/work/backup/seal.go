package backup

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// ParseRecipients reads age recipients (age1…).
func ParseRecipients(all []string) ([]age.Recipient, error) {
	if len(all) == 0 {
		return nil, nil
	}
	for _, s := range all {
		if strings.HasPrefix(strings.ToUpper(s), "AGE-SECRET-KEY-") {
			return nil, errors.New("that is a secret identity, and the node needs only the recipient (age1…): make a new pair, since this one was in a setting")
		}
	}
	found, err := age.ParseRecipients(strings.NewReader(strings.Join(all, "\n")))
	if err != nil {
		return nil, fmt.Errorf("no age recipients: %w", err)
	}
	if _, err := age.Encrypt(io.Discard, found...); err != nil { // kinds that cannot be mixed
		return nil, err
	}
	return found, nil
}

// ReadIdentities reads a file of age identities.
func ReadIdentities(file string) ([]age.Identity, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ids, err := age.ParseIdentities(f)
	if err != nil { // which may repeat a line of the file
		return nil, fmt.Errorf("%s holds no identities of age", file)
	}
	return ids, nil
}

// A listener is a recipient that learns the key of the file, so that what was stored can be read once without an identity.
type listener struct {
	age.Recipient
	key []byte
}

func (l *listener) Wrap(key []byte) ([]*age.Stanza, error) {
	l.key = bytes.Clone(key)
	return l.Recipient.Wrap(key)
}

// WrapWithLabels keeps the label of recipients that must not be mixed.
func (l *listener) WrapWithLabels(key []byte) ([]*age.Stanza, []string, error) {
	l.key = bytes.Clone(key)
	if r, ok := l.Recipient.(age.RecipientWithLabels); ok {
		return r.WrapWithLabels(key)
	}
	s, err := l.Recipient.Wrap(key)
	return s, nil, err
}

// pack writes what write writes, compressed, and encrypted where there are recipients. The identity opens this file, and is kept nowhere.
func pack(w io.Writer, to []age.Recipient, write func(io.Writer) error) (identity age.Identity, err error) {
	var sealed io.WriteCloser
	if len(to) > 0 {
		first := &listener{Recipient: to[0]}
		if sealed, err = age.Encrypt(w, append([]age.Recipient{first}, to[1:]...)...); err != nil {
			return nil, err
		}
		w, identity = sealed, age.NewInjectedFileKeyIdentity(first.key)
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := write(z); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if sealed != nil {
		err = sealed.Close()
	}
	return identity, err
}

// Forms of what is in a backup.
const (
	ageMagic    = "age-encryption.org/"
	gzipMagic   = "\x1f\x8b"
	sqliteMagic = "SQLite format 3\x00"
)

var (
	// ErrSealed means that an identity is needed.
	ErrSealed   = errors.New("the backup is encrypted: name the file of its age identity with --identity")
	errNotOurs  = errors.New("this is no backup of a node: neither one that it made by itself nor a SQLite database")
	errIdentity = errors.New("the identity does not open this backup")
)

// Unpack opens a backup of any form: a dump, or with plain a SQLite database, compressed and encrypted or not.
func Unpack(r io.Reader, identities []age.Identity) (out io.Reader, plain bool, err error) {
	for range 4 {
		b := bufio.NewReaderSize(r, 64<<10)
		start, err := b.Peek(len(ageMagic))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		switch {
		case bytes.HasPrefix(start, []byte(ageMagic)):
			if len(identities) == 0 {
				return nil, false, ErrSealed
			}
			if r, err = age.Decrypt(b, identities...); err != nil {
				return nil, false, fmt.Errorf("%w (%w)", errIdentity, err)
			}
		case bytes.HasPrefix(start, []byte(gzipMagic)):
			if r, err = gzip.NewReader(b); err != nil {
				return nil, false, err
			}
		case bytes.HasPrefix(start, []byte(sqliteMagic)):
			return b, true, nil
		case bytes.HasPrefix(start, []byte("backup.json\x00")):
			return b, false, nil
		default:
			return nil, false, errNotOurs
		}
	}
	return nil, false, errNotOurs
}
