package nodetest

import (
	"crypto/rsa"
	_ "embed"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/room/credential"
	"stoa/storage/storagetest"
)

// Config is the configuration of a node on loopback with a database that is
// migrated and, where change says nothing else, new. Migrating it and making an RSA
// key are nearly all of what the first start of a node costs. Proofs of work are of level 0 with
// one iteration, which is most of what tests with many of them would take; those of an operator's
// node (without Dev) are what they cost in use.
func Config(t testing.TB, change ...func(*node.Config)) node.Config {
	t.Helper()
	c := node.Config{Listen: "127.0.0.1:0", Data: storagetest.Dir(t), Dev: true, Version: "test", NewRSA: rsaKeys(), ProofCost: 1, ArchiveWork: 10}
	for _, f := range change {
		f(&c)
	}
	if path := filepath.Join(c.Data, "stoa.db"); c.Database == "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, os.MkdirAll(c.Data, 0o700))
			storagetest.Migrated(t, path)
		}
	}
	return c
}

// primes are of 1024 bits each, in base 62: to find them is nearly all of what a key costs.
//
//go:embed testdata/primes.txt
var primes string

// rsaKeys makes RSA keys, all distinct within a process: each of another two of the primes, 780 in all, and then new ones.
var rsaKeys = sync.OnceValue(func() func() (key.Pair, error) {
	var all []*big.Int
	for line := range strings.FieldsSeq(primes) {
		p, _ := new(big.Int).SetString(line, 62)
		all = append(all, p)
	}
	var mu sync.Mutex
	i, j := 0, 0 // of the last key, i below j
	return func() (key.Pair, error) {
		mu.Lock()
		defer mu.Unlock()
		if i++; i >= j {
			i, j = 0, j+1
		}
		if j >= len(all) {
			return credential.GenerateRSA()
		}
		one, a, b := big.NewInt(1), all[i], all[j]
		k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(a, b), E: 65537}, Primes: []*big.Int{a, b}}
		phi := new(big.Int).Mul(new(big.Int).Sub(a, one), new(big.Int).Sub(b, one))
		k.D = new(big.Int).ModInverse(big.NewInt(int64(k.E)), phi)
		k.Precompute()
		return key.NewPair(k)
	}
})
