package doctor

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"stoa/identity/sshsig"
	"stoa/protocol"
)

// Releases are where the checksums of the newest release are (SHA256SUMS, and beside it SHA256SUMS.sig), and the key that signs
// them (docs/INSTALL.md).
type Releases struct {
	Address string // "" for none
	Key     ed25519.PublicKey
}

// releaseNamespace is what the signatures are made for (ssh-keygen -n).
const releaseNamespace = "stoa-release"

const maxSums = 64 << 10 // bytes

var released = regexp.MustCompile(`(?m)^[0-9a-f]{64} [ *]stoa-([0-9]+\.[0-9]+\.[0-9]+)-[a-z0-9-]+\.tar\.gz$`)

// release compares the version of the program with that of the newest release.
func (d *Doctor) release(ctx context.Context, _ *found) []protocol.Check {
	if d.Releases.Address == "" {
		return nil
	}
	newest, err := d.newest(ctx)
	switch {
	case err != nil:
		return []protocol.Check{protocol.Found("release-unread", cause(err))}
	case later(newest, d.Version):
		return []protocol.Check{protocol.Found("release-newer", newest+"; this is "+d.Version)}
	}
	return []protocol.Check{protocol.Passed("release", "the newest is "+newest)}
}

// newest is the version of the newest release, by its signed checksums.
func (d *Doctor) newest(ctx context.Context) (string, error) {
	c := client(d.own())
	sums, err := fetched(ctx, c, d.Releases.Address)
	if err != nil {
		return "", err
	}
	sig, err := fetched(ctx, c, d.Releases.Address+".sig")
	if err != nil {
		return "", err
	}
	if err := sshsig.Verify(d.Releases.Key, releaseNamespace, sums, sig); err != nil {
		return "", err
	}
	newest := ""
	for _, m := range released.FindAllSubmatch(sums, -1) {
		if v := string(m[1]); newest == "" || later(v, newest) {
			newest = v
		}
	}
	if newest == "" {
		return "", errors.New("the checksums name no archive such as stoa-0.1.0-linux-amd64.tar.gz")
	}
	return newest, nil
}

func fetched(ctx context.Context, c *http.Client, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxSums))
}
