package nodetest

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/storage/storagetest"
)

// Config is the configuration of a node on loopback with a database that is
// migrated and, where change says nothing else, new. Migrating it and making an RSA
// key are nearly all of what the first start of a node costs. Proofs of work are of level 0 with
// one iteration, which is most of what tests with many of them would take; those of an operator's
// node (without Dev) are what they cost in use.
func Config(t testing.TB, change ...func(*node.Config)) node.Config {
	t.Helper()
	c := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test", NewRSA: rsaKeys.Pair, ProofCost: 1, ArchiveWork: 10}
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

// rsaKeys are those of the nodes of all tests.
var rsaKeys RSAPool

// An RSAPool makes RSA keys, all distinct, each of another two of its primes: n
// primes are enough for n(n-1)/2 keys, and what takes time is to find primes.
type RSAPool struct {
	mu     sync.Mutex
	Primes []*big.Int
	i, j   int // of the last key, i below j
}

// Pair makes the next key.
func (p *RSAPool) Pair() (key.Pair, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.i++; p.i >= p.j {
		p.i, p.j = 0, p.j+1
	}
	for p.j >= len(p.Primes) {
		fresh, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return key.Pair{}, err
		}
		p.Primes = append(p.Primes, fresh.Primes...)
	}
	one, a, b := big.NewInt(1), p.Primes[p.i], p.Primes[p.j]
	k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(a, b), E: 65537}, Primes: []*big.Int{a, b}}
	phi := new(big.Int).Mul(new(big.Int).Sub(a, one), new(big.Int).Sub(b, one))
	k.D = new(big.Int).ModInverse(big.NewInt(int64(k.E)), phi)
	k.Precompute()
	return key.NewPair(k)
}
