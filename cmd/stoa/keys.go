package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/room/credential"
	"stoa/protocol/pow"
)

type keygenCmd struct {
	Out string `arg:"" optional:"" help:"File to write, which must not exist; - or nothing prints it."`
}

func (c *keygenCmd) Help() string {
	return "An Ed25519 key pair. The thumbprint (keyid) is printed on standard error."
}

func (c *keygenCmd) Run(w *world) error {
	pair, err := key.GenerateEd25519()
	if err != nil {
		return err
	}
	if c.Out == "" || c.Out == "-" {
		raw, err := pair.MarshalPrivate()
		if err != nil {
			return err
		}
		fmt.Fprintf(w.stdout, "%s\n", raw)
	} else if err := writeKey(c.Out, pair); err != nil {
		return err
	}
	fmt.Fprintf(w.stderr, "keyid %s\n", pair.Thumbprint())
	return nil
}

// writeKey writes a private JWK that only its owner can read; it never overwrites a file.
func writeKey(file string, pair key.Pair) error {
	raw, err := pair.MarshalPrivate()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

type signCmd struct {
	Key    string `required:"" placeholder:"FILE" help:"Private JWK."`
	Method string `default:"POST" help:"Method."`
	URL    string `arg:"" help:"Address of the request."`
	Agent  string `help:"Chain identity, sent and covered as Agent-Identity."`
	Body   string `placeholder:"FILE" help:"Body; - reads standard input."`
	Type   string `default:"application/json" help:"Content-Type of the body."`
}

func (c *signCmd) Help() string { return "Prints the header fields, ready for curl -H @-." }

func (c *signCmd) Run(w *world) error {
	raw, err := os.ReadFile(c.Key)
	if err != nil {
		return err
	}
	pair, err := key.ParsePair(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	var body []byte
	if c.Body != "" {
		if body, err = readInput(w, c.Body); err != nil {
			return err
		}
	}
	r, err := http.NewRequest(strings.ToUpper(c.Method), c.URL, bytes.NewReader(body))
	if err != nil {
		return usage{err}
	}
	o := httpsig.SignOptions{Key: pair.Signer()}
	if len(body) > 0 {
		r.Header.Set("Content-Type", c.Type)
	}
	if c.Agent != "" {
		r.Header.Set("Agent-Identity", c.Agent)
	}
	target, err := httpsig.ParseTarget(c.URL)
	if err != nil {
		return usage{err}
	}
	if err := httpsig.SignRequest(r, target, body, o); err != nil {
		return err
	}
	for _, name := range []string{"Content-Type", "Content-Digest", "Agent-Identity", "Signature-Input", "Signature"} {
		if v := r.Header.Get(name); v != "" {
			fmt.Fprintf(w.stdout, "%s: %s\n", name, v)
		}
	}
	return nil
}

type directoryCmd struct {
	Key  string `required:"" placeholder:"FILE" help:"Private JWK."`
	Node string `arg:"" help:"Address of the node that will serve the directory."`
}

func (c *directoryCmd) Help() string {
	return "The signature is valid for seven days. The operator submits it with: stoa admin key directory."
}

func (c *directoryCmd) Run(w *world) error {
	raw, err := os.ReadFile(c.Key)
	if err != nil {
		return err
	}
	pair, err := key.ParsePair(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	signed, err := credential.SignDirectory(c.Node, pair)
	if err != nil {
		return usage{err}
	}
	fmt.Fprintf(w.stdout, "%s\n", signed)
	return nil
}

type verifyCmd struct {
	Proof   verifyProofCmd   `cmd:"" default:"withargs" help:"Check who wrote what a node shows, by its proof document."`
	Request verifyRequestCmd `cmd:"" help:"Check a signed HTTP request from standard input."`
	Receipt verifyReceiptCmd `cmd:"" help:"Check a receipt for an order, with the keys of the node that signed it."`
}

type verifyRequestCmd struct {
	Key  string `required:"" placeholder:"FILE" help:"JWK or JWK Set with the public key."`
	Base string `required:"" placeholder:"URL" help:"Public address that the request was sent to."`
	File string `arg:"" optional:"" help:"The request as sent over HTTP/1.1; - or nothing reads standard input."`
}

func (c *verifyRequestCmd) Run(w *world) error {
	raw, err := readInput(w, c.File)
	if err != nil {
		return err
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return usagef("not an HTTP request: %w", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return usagef("the body is shorter than Content-Length says: %w", err)
	}
	target, err := httpsig.ParseTarget(c.Base)
	if err != nil {
		return usage{err}
	}
	keys, err := readKeys(c.Key)
	if err != nil {
		return err
	}
	m, err := httpsig.FromRequest(r, target)
	if err != nil {
		return err
	}
	policy := httpsig.WritePolicy()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		policy = httpsig.ReadPolicy()
	}
	res, err := (&httpsig.Verifier{Keys: keys}).Verify(w.ctx, &m, body, policy)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "verified: keyid %s, %s, covers %s\n", res.Thumbprint, res.Algorithm, res.Covered)
	return nil
}

// keySet resolves keys from a file.
type keySet struct{ key.Set }

func readKeys(file string) (keySet, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return keySet{}, err
	}
	return parseKeys(file, raw)
}

// parseKeys reads a JWK Set, or one JWK, that came from a file or address.
func parseKeys(file string, raw []byte) (keySet, error) {
	if set, err := key.ParseSet(raw); err == nil && len(set.Keys) > 0 {
		return keySet{set}, nil
	}
	if pair, err := key.ParsePair(raw); err == nil {
		return keySet{key.Set{Keys: []key.Public{pair.Published()}}}, nil
	}
	public, err := key.ParsePublic(raw)
	if err != nil {
		return keySet{}, fmt.Errorf("%s: %w", file, err)
	}
	return keySet{key.Set{Keys: []key.Public{public}}}, nil
}

func (s keySet) Resolve(_ context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	public, ok := s.Find(q.Params.KeyID)
	if !ok {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	k, err := httpsig.NewKey(public.Key)
	return httpsig.Resolved{Key: k}, err
}

type powCmd struct {
	Solve powSolveCmd `cmd:"" help:"Solve the challenge on standard input and print the solution."`
}

type powSolveCmd struct {
	Base64 bool `name:"base64" help:"Print it as base64, for the Proof-Of-Work header."`
}

func (c *powSolveCmd) Run(w *world) error {
	var challenge pow.Challenge
	if err := json.NewDecoder(io.LimitReader(w.stdin, 64<<10)).Decode(&challenge); err != nil || challenge.Parameters.Algorithm == "" {
		return usagef("standard input is not a challenge; get one with: curl NODE/api/public/pow?purpose=contact")
	}
	solution, err := pow.Solve(w.ctx, challenge)
	if err != nil {
		return err
	}
	if c.Base64 {
		fmt.Fprintln(w.stdout, solution.Encode())
		return nil
	}
	return json.NewEncoder(w.stdout).Encode(solution)
}
