// Package s3 keeps files in a bucket of Amazon S3 or of a server that speaks its API (2006-03-01), with requests signed by
// AWS Signature Version 4. It lists, writes (in parts, with bounded memory), reads (in ranges) and deletes objects below one prefix.
//
// The signature is that of aws-sdk-go-v2; its client for S3 would add several megabytes to the program for these eight requests.
package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"stoa/protocol"
	"stoa/protocol/netx"
)

const (
	tries       = 5
	firstPause  = 500 * time.Millisecond
	longPause   = 10 * time.Second
	requestTime = 2 * time.Minute
	maxAnswer   = 4 << 20 // bytes of a listing or an error
)

// MaxPart is how many bytes a request or answer has at most.
const MaxPart = 128 << 20

// A Bucket is where objects are. Its members are set before its first use.
type Bucket struct {
	Client   *http.Client
	Endpoint string // such as https://s3.eu-central-1.amazonaws.com; the bucket is a part of the path
	Region   string
	Name     string
	Prefix   string // of every key, "" or ending in a slash
	ID       string
	Secret   string
	Session  string // of temporary keys, "" for others
	PartSize int    // bytes; at least 5 MiB (S3), 0 means 8 MiB
}

// An Object is what a listing says of one.
type Object struct {
	Name string // without the prefix
	Size int64
}

// A Fault is a refusal of the server.
type Fault struct {
	Status  int
	Code    string
	Message string
	Region  string // where the bucket is, when that was the reason
}

func (f *Fault) Error() string {
	text := fmt.Sprintf("status %d %s", f.Status, f.Code)
	if f.Message != "" {
		text += ": " + f.Message
	}
	if f.Region != "" {
		text += "; the bucket is in the region " + f.Region
	}
	return text
}

// again reports whether the same request may succeed later.
func (f *Fault) again() bool {
	return f.Status >= 500 || f.Status == http.StatusTooManyRequests || f.Status == http.StatusRequestTimeout || f.Code == "RequestTimeout"
}

func (b *Bucket) part() int {
	if b.PartSize > 0 {
		return b.PartSize
	}
	return 8 << 20
}

// A request is one to the server.
type request struct {
	method string
	key    string // "" for the bucket itself
	query  url.Values
	body   []byte
	header http.Header
	most   int64 // bytes of the answer
}

// do sends a request until it succeeds, is refused or has failed several times, and returns the answer's body.
func (b *Bucket) do(ctx context.Context, r request) (body []byte, header http.Header, err error) {
	for try := 1; ; try++ {
		body, header, err = b.once(ctx, r)
		fault, refused := errors.AsType[*Fault](err)
		if err == nil || refused && !fault.again() || try == tries || ctx.Err() != nil {
			break
		}
		t := time.NewTimer(netx.Jitter(netx.Backoff(firstPause, longPause, try)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("s3: %s %s/%s: %w", r.method, b.Name, r.key, err)
	}
	return body, header, nil
}

func (b *Bucket) once(ctx context.Context, r request) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	u, err := url.Parse(b.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/"+b.Name, strings.TrimSuffix(u.EscapedPath(), "/")+"/"+b.Name
	if r.key != "" {
		u.Path, u.RawPath = u.Path+"/"+r.key, u.RawPath+"/"+escaped(r.key)
	}
	u.RawQuery = strings.ReplaceAll(r.query.Encode(), "+", "%20")
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	sum := sha256.Sum256(r.body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // the path is signed as it is sent
	keys := aws.Credentials{AccessKeyID: b.ID, SecretAccessKey: b.Secret, SessionToken: b.Session}
	if err := signer.SignHTTP(ctx, keys, req, hash, "s3", b.Region, time.Now()); err != nil {
		return nil, nil, err
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	most := max(r.most, maxAnswer)
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errors.New("the answer is too long")
	}
	if err == nil && (resp.StatusCode >= 300 || bytes.Contains(body[:min(len(body), 200)], []byte("<Error>"))) {
		err = faultOf(resp, body)
	}
	return body, resp.Header, err
}

// escaped is a key as the signature wants it: everything but letters, digits, -._~ and / is escaped (Signature Version 4, "CanonicalURI").
func escaped(key string) string {
	return strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(key))
}

// faultOf reads a refusal. A completed upload may be refused under status 200.
func faultOf(resp *http.Response, body []byte) error {
	f := &Fault{Status: resp.StatusCode, Region: resp.Header.Get("X-Amz-Bucket-Region")}
	var e struct{ Code, Message string }
	if xml.Unmarshal(body, &e) == nil {
		f.Code, f.Message = protocol.Clip(protocol.OneLine(e.Code), 100), protocol.Clip(protocol.OneLine(e.Message), 300)
	}
	if f.Status != http.StatusMovedPermanently && f.Code != "AuthorizationHeaderMalformed" {
		f.Region = ""
	}
	if f.Status < 300 {
		f.Status = http.StatusInternalServerError
	}
	return f
}

// List lists the objects below the prefix, those in folders below it left out.
func (b *Bucket) List(ctx context.Context) (all []Object, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {b.Prefix}, "delimiter": {"/"}}
	for {
		raw, _, err := b.do(ctx, request{method: http.MethodGet, query: query})
		if err != nil {
			return nil, err
		}
		var page struct {
			Contents []struct {
				Key  string
				Size int64
			}
			IsTruncated           bool
			NextContinuationToken string
		}
		if err := xml.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("s3: list %s: %w", b.Name, err)
		}
		for _, o := range page.Contents {
			if name, ok := strings.CutPrefix(o.Key, b.Prefix); ok {
				all = append(all, Object{name, o.Size})
			}
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			return all, nil
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
}

// Delete deletes an object; it is no error when there is none.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	_, _, err := b.do(ctx, request{method: http.MethodDelete, key: b.Prefix + name})
	return err
}

// Put writes an object whole or not at all: nothing of it is listed before write has returned nil.
func (b *Bucket) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	w := &upload{ctx: ctx, b: b, key: b.Prefix + name}
	err := write(w)
	if err == nil {
		err = w.finish()
	}
	if err != nil && w.id != "" {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		err = errors.Join(err, b.abort(end, w.key, w.id))
	}
	return err
}

func (b *Bucket) abort(ctx context.Context, key, id string) error {
	_, _, err := b.do(ctx, request{method: http.MethodDelete, key: key, query: url.Values{"uploadId": {id}}})
	return err
}

// An upload is an object that is being written.
type upload struct {
	ctx     context.Context
	b       *Bucket
	key     string
	id      string // "" before the first part is full
	waiting []byte
	parts   []uploaded
}

type uploaded struct {
	PartNumber int
	ETag       string
}

func (w *upload) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		k := min(w.b.part()-len(w.waiting), len(p))
		w.waiting, p, n = append(w.waiting, p[:k]...), p[k:], n+k
		if len(w.waiting) == w.b.part() {
			if err := w.send(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (w *upload) send() error {
	if w.id == "" {
		raw, _, err := w.b.do(w.ctx, request{method: http.MethodPost, key: w.key, query: url.Values{"uploads": {""}}})
		var begun struct{ UploadId string }
		if err == nil {
			err = xml.Unmarshal(raw, &begun)
		}
		if err != nil {
			return err
		}
		w.id = begun.UploadId
	}
	n := len(w.parts) + 1
	_, header, err := w.b.do(w.ctx, request{method: http.MethodPut, key: w.key, body: w.waiting,
		query: url.Values{"partNumber": {strconv.Itoa(n)}, "uploadId": {w.id}}})
	if err != nil {
		return err
	}
	w.parts, w.waiting = append(w.parts, uploaded{n, header.Get("ETag")}), w.waiting[:0]
	return nil
}

func (w *upload) finish() error {
	if w.id == "" {
		_, _, err := w.b.do(w.ctx, request{method: http.MethodPut, key: w.key, body: w.waiting})
		return err
	}
	if len(w.waiting) > 0 {
		if err := w.send(); err != nil {
			return err
		}
	}
	raw, err := xml.Marshal(struct {
		XMLName xml.Name   `xml:"CompleteMultipartUpload"`
		Part    []uploaded `xml:"Part"`
	}{Part: w.parts})
	if err == nil {
		_, _, err = w.b.do(w.ctx, request{method: http.MethodPost, key: w.key, body: raw, query: url.Values{"uploadId": {w.id}}})
	}
	return err
}

// AbortUploads ends uploads of names that begin so, which a process left that was killed: their parts take room, and are not listed.
func (b *Bucket) AbortUploads(ctx context.Context, begin string) error {
	raw, _, err := b.do(ctx, request{method: http.MethodGet, query: url.Values{"uploads": {""}, "prefix": {b.Prefix + begin}}})
	var page struct {
		Upload []struct{ Key, UploadId string }
	}
	if err == nil {
		err = xml.Unmarshal(raw, &page)
	}
	if err != nil {
		return err
	}
	for _, u := range page.Upload {
		if strings.HasPrefix(u.Key, b.Prefix+begin) {
			err = errors.Join(err, b.abort(ctx, u.Key, u.UploadId))
		}
	}
	return err
}

// Open reads an object of a size that a listing has said, in ranges, each of which is asked for again when it fails.
func (b *Bucket) Open(ctx context.Context, o Object) io.Reader {
	return &download{ctx: ctx, b: b, o: o}
}

type download struct {
	ctx  context.Context
	b    *Bucket
	o    Object
	at   int64
	tag  string // of the first range
	rest []byte
}

func (d *download) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		if d.at >= d.o.Size {
			return 0, io.EOF
		}
		if err := d.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *download) fetch() error {
	end := min(d.at+int64(d.b.part()), d.o.Size)
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", d.at, end-1)}}
	if d.tag != "" {
		header.Set("If-Match", d.tag)
	}
	raw, got, err := d.b.do(d.ctx, request{method: http.MethodGet, key: d.b.Prefix + d.o.Name, header: header, most: end - d.at})
	if err == nil && int64(len(raw)) != end-d.at {
		err = fmt.Errorf("s3: %s: %d bytes instead of %d: %w", d.o.Name, len(raw), end-d.at, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	d.rest, d.at, d.tag = raw, end, got.Get("ETag")
	return nil
}
