package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// Limits bound what an archive may hold. Reading a hostile archive ends before it costs more than
// the bytes that were sent.
type Limits struct {
	Bytes int64 // of all members, unpacked
	Lines int   // of all NDJSON members
}

// OwnerLimits are for archives that are sent over HTTP, OperatorLimits for those of the command
// line.
var (
	OwnerLimits    = Limits{Bytes: 512 << 20, Lines: 200_000}
	OperatorLimits = Limits{Bytes: 1 << 36, Lines: 50_000_000}
)

const (
	maxWhole = 512 << 10 // bytes of a member that is read in one piece
	maxLine  = 512 << 10 // bytes of a line; a post with its signed request is the longest
)

// A record is one JSON object of the archive.
type record struct {
	file string
	n    int // from 1
	raw  []byte
}

func refused(format string, args ...any) error {
	return protocol.Errorf(protocol.InvalidRequest, "the archive cannot be imported: "+format, args...)
}

// walk reads an archive from the beginning, checks it against its manifest and the limits, and
// calls begin once, then each for every record in order. each is called before the member's hash
// has been compared: nothing that it does may last unless walk returns nil.
func walk(r io.Reader, lim Limits, begin func(m *manifest, raw []byte, sig signature) error, each func(record) error, a *Archive) error {
	buffered := bufio.NewReader(r)
	zip, err := gzip.NewReader(buffered)
	if err != nil {
		return refused("it is not a gzip file")
	}
	zip.Multistream(false)
	packed := tar.NewReader(&bounded{r: zip, left: lim.Bytes})
	raw, err := readPiece(packed, manifestFile, maxWhole)
	if err != nil {
		return err
	}
	var m manifest
	if err := a.decode(record{manifestFile, 1, raw}, &m); err != nil {
		return err
	}
	if m.Format != protocol.ArchiveFormat {
		return refused("this node reads %s", protocol.ArchiveFormat)
	}
	signed, err := readPiece(packed, signatureFile, maxWhole)
	if err != nil {
		return err
	}
	var sig signature
	if err := a.decode(record{signatureFile, 1, signed}, &sig); err != nil {
		return err
	}
	if err := begin(&m, raw, sig); err != nil {
		return err
	}
	last, lines := -1, 0
	for _, one := range m.Members {
		at := slices.Index(order, one.Name)
		if at <= last || last < 0 && one.Name != profileFile {
			return refused("its members are not those of the format, or not in its order")
		}
		last, lines = at, lines+one.Count
		if lines > lim.Lines {
			return protocol.Errorf(protocol.TooLarge, "the archive has more than %d records; the operator's command line takes larger ones", lim.Lines)
		}
		if err := readMember(packed, one, each); err != nil {
			return err
		}
	}
	if last < 0 {
		return refused("there is no %s", profileFile)
	}
	if _, err := packed.Next(); err != io.EOF {
		return unpackError(err, "it holds more than the manifest names")
	}
	if _, err := io.Copy(io.Discard, &bounded{r: zip, left: 1 << 20}); err != nil { // gzip's checksum is after the padding
		return unpackError(err, "it is damaged at the end")
	}
	if _, err := buffered.ReadByte(); err != io.EOF {
		return refused("there is data after its end")
	}
	return nil
}

// next opens the next member, which must be a plain file of that name.
func next(packed *tar.Reader, name string) (*tar.Header, error) {
	h, err := packed.Next()
	if err != nil {
		return nil, unpackError(err, name+" is missing")
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return nil, refused("%s is missing, or not in its place", name)
	}
	return h, nil
}

func readPiece(packed *tar.Reader, name string, most int64) ([]byte, error) {
	h, err := next(packed, name)
	if err != nil {
		return nil, err
	}
	if h.Size > most {
		return nil, refused("%s is too long", name)
	}
	raw, err := io.ReadAll(packed)
	if err != nil {
		return nil, unpackError(err, name+" is damaged")
	}
	return raw, nil
}

func readMember(packed *tar.Reader, one member, each func(record) error) error {
	h, err := next(packed, one.Name)
	if err != nil {
		return err
	}
	if h.Size != one.Bytes || whole(one.Name) && (one.Count != 1 || one.Bytes > maxWhole) {
		return refused("%s is not as long as the manifest says", one.Name)
	}
	sum, count := sha256.New(), 0
	lines := bufio.NewScanner(io.TeeReader(packed, sum))
	lines.Buffer(make([]byte, 0, 16<<10), maxLine)
	if whole(one.Name) {
		lines.Buffer(make([]byte, 0, 16<<10), maxWhole+1)
		lines.Split(scanWhole)
	}
	for lines.Scan() {
		if count++; count > one.Count {
			return refused("%s has more records than the manifest says", one.Name)
		}
		if err := each(record{one.Name, count, lines.Bytes()}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return refused("a line of %s is too long", one.Name)
		}
		return unpackError(err, one.Name+" is damaged")
	}
	if count != one.Count || hex.EncodeToString(sum.Sum(nil)) != one.SHA256 {
		return refused("%s is not what the manifest says: records or SHA-256 differ", one.Name)
	}
	return nil
}

// scanWhole is a bufio.SplitFunc that returns all the data as one token.
func scanWhole(data []byte, atEOF bool) (int, []byte, error) {
	if !atEOF || len(data) == 0 {
		return 0, nil, nil
	}
	return len(data), data, nil
}

// bounded fails after a fixed number of unpacked bytes, however small the packed file is.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, protocol.Errorf(protocol.TooLarge, "the archive is larger, unpacked, than this endpoint accepts; the operator's command line accepts larger ones")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// unpackError keeps a *protocol.Error, and makes a refusal of any other error.
func unpackError(err error, what string) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	return refused("%s", what)
}

// decode reads a record strictly and checks it against its schema and the rules for text, as every
// door does with fresh input.
func (a *Archive) decode(r record, into any) error {
	fail := func(faults []protocol.Fault) error {
		f := faults[0]
		return refused("%s, record %d: %s %s", r.file, r.n, f.Pointer, f.Detail)
	}
	if err := strictjson.Check(r.raw, strictjson.Limits{MaxBytes: maxWhole, MaxDepth: 24, MaxTokens: 40_000}); err != nil {
		return refused("%s, record %d: %w", r.file, r.n, err)
	}
	var value map[string]any
	if err := json.Unmarshal(r.raw, &value); err != nil || value == nil {
		return refused("%s, record %d is not a JSON object", r.file, r.n)
	}
	schemas := recordSchemas()
	schema := schemas.Of(typeOf(into))
	if faults := schemas.Check(schema, value); len(faults) > 0 {
		return fail(faults)
	}
	if err := json.NewDecoder(bytes.NewReader(r.raw)).Decode(into); err != nil {
		return refused("%s, record %d: %w", r.file, r.n, err)
	}
	if c, ok := into.(protocol.Checker); ok {
		if faults := c.Check(); len(faults) > 0 {
			return fail(faults)
		}
	}
	return nil
}
