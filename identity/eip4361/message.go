// Package eip4361 reads and writes the text that an Ethereum account signs to sign in: of EIP-4361
// (https://eips.ethereum.org/EIPS/eip-4361), which CAIP-122 and the sign-in-with-x of x402 have for such accounts, and of SIWA
// ("sign in with agent"), which has two lines more. The reader is strict: a text that does not have exactly
// the form of the specification is refused, and what was read gives the same bytes again. Whether
// the domain, the chain, the nonce and the times are right is for the caller to say.
package eip4361

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// MaxBytes is the length of a message at most.
const MaxBytes = 4096

// maxResources is how many resources a message has at most.
const maxResources = 10

// A Message is a request to sign in. Times are RFC 3339; "" for one that is left out.
type Message struct {
	Scheme    string // "" for https
	Domain    string // host, and port if there is one
	Account   string // address with its EIP-55 checksum
	Statement string // "" for none
	URI       string
	ChainID   uint64
	Nonce     string // 8 to 200 letters and digits

	AgentID, AgentRegistry string // of SIWA: number of the token, and eip155:<chainId>:<registry>; else ""

	IssuedAt, ExpirationTime, NotBefore string

	RequestID *string // nil for none
	Resources []string
}

// ErrInvalid is the error of a text that is no message.
var ErrInvalid = errors.New("not a message of EIP-4361")

const (
	asks      = " wants you to sign in with your Ethereum account:"
	asksAgent = " wants you to sign in with your Agent account:" // SIWA
	version   = "1"
)

var (
	schemes    = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
	domains    = regexp.MustCompile(`^[A-Za-z0-9._~\[\]:-]{1,255}$`)
	accounts   = regexp.MustCompile(`^0x[0-9A-Fa-f]{40}$`)
	nonces     = regexp.MustCompile(`^[A-Za-z0-9]{8,200}$`)
	chains     = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	agents     = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,77})$`)
	registries = regexp.MustCompile(`^eip155:[1-9][0-9]{0,18}:0x[0-9A-Fa-f]{40}$`)
	statements = regexp.MustCompile(`^[A-Za-z0-9 ._~:/?#\[\]@!$&'()*+,;=-]+$`) // reserved and unreserved (RFC 3986 §2), and the space
	requests   = regexp.MustCompile(`^(?:[A-Za-z0-9._~:@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$`)
	addresses  = regexp.MustCompile(`^(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$`)
	times      = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)
)

// Address returns the EIP-55 form of an address in any case; ok is false if s is not an address.
func Address(s string) (checksummed string, ok bool) {
	return common.HexToAddress(s).Hex(), accounts.MatchString(s)
}

// Parse reads a message. The error is ErrInvalid with what is wrong, for the person who sent it.
func Parse(text string) (Message, error) {
	if len(text) > MaxBytes {
		return Message{}, fmt.Errorf("%w: it is longer than %d bytes", ErrInvalid, MaxBytes)
	}
	r := reader{lines: strings.Split(text, "\n")}
	m, agent := r.head()
	m.URI = r.need("URI: ", addresses)
	if r.need("Version: ", nil) != version {
		r.fail("its version is not 1")
	}
	if agent {
		m.AgentID, m.AgentRegistry = r.need("Agent ID: ", agents), r.need("Agent Registry: ", registries)
	}
	m.ChainID, _ = strconv.ParseUint(r.need("Chain ID: ", chains), 10, 64)
	m.Nonce = r.need("Nonce: ", nonces)
	m.IssuedAt = r.need("Issued At: ", times)
	m.ExpirationTime, _ = r.may("Expiration Time: ", times)
	m.NotBefore, _ = r.may("Not Before: ", times)
	if id, ok := r.may("Request ID: ", requests); ok {
		m.RequestID = &id
	}
	if r.more() && r.lines[0] == "Resources:" {
		r.lines = r.lines[1:]
		m.Resources = []string{}
		for r.more() {
			m.Resources = append(m.Resources, r.need("- ", addresses))
		}
	}
	if r.more() {
		r.fail("there is more after its end")
	}
	if r.why == "" {
		r.why = m.fault()
	}
	if r.why == "" && m.String() != text {
		r.fail("it is not in its one form")
	}
	if r.why != "" {
		return Message{}, fmt.Errorf("%w: %s", ErrInvalid, r.why)
	}
	return m, nil
}

// fault returns what is wrong with the values of a message that has the right lines, "" for nothing.
func (m Message) fault() string {
	for _, text := range append([]string{m.URI}, m.Resources...) {
		if u, err := url.Parse(text); err != nil || u.Scheme == "" {
			return "an address in it is not a URI"
		}
	}
	for _, text := range []string{m.IssuedAt, m.ExpirationTime, m.NotBefore} {
		if _, err := moment(text); err != nil {
			return "a time in it is not one of RFC 3339"
		}
	}
	switch {
	case len(m.Resources) > maxResources:
		return fmt.Sprintf("it has more than %d resources", maxResources)
	case m.ChainID == 0:
		return "its chain id is not a number of 64 bits"
	}
	return ""
}

// Identity returns the ERC-8004 identity that the text names: by the lines of SIWA, or as its one resource of the form
// eip155:<chainId>:<registry>:<agentId>; "" for none.
func (m Message) Identity() (id string) {
	if m.AgentRegistry != "" {
		return m.AgentRegistry + ":" + m.AgentID
	}
	for _, x := range m.Resources {
		if strings.HasPrefix(x, "eip155:") {
			if id != "" {
				return ""
			}
			id = x
		}
	}
	return id
}

// Times returns the times of a message that was parsed; the zero time for one that is left out.
func (m Message) Times() (issued, expires, notBefore time.Time) {
	issued, _ = moment(m.IssuedAt)
	expires, _ = moment(m.ExpirationTime)
	notBefore, _ = moment(m.NotBefore)
	return issued, expires, notBefore
}

func moment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

// String returns the text that is signed.
func (m Message) String() string {
	var b strings.Builder
	if m.Scheme != "" {
		b.WriteString(m.Scheme + "://")
	}
	first := asks
	if m.AgentRegistry != "" {
		first = asksAgent
	}
	b.WriteString(m.Domain + first + "\n" + m.Account + "\n\n")
	if m.Statement != "" {
		b.WriteString(m.Statement + "\n")
	}
	fmt.Fprintf(&b, "\nURI: %s\nVersion: %s", m.URI, version)
	if m.AgentRegistry != "" {
		fmt.Fprintf(&b, "\nAgent ID: %s\nAgent Registry: %s", m.AgentID, m.AgentRegistry)
	}
	fmt.Fprintf(&b, "\nChain ID: %d\nNonce: %s\nIssued At: %s", m.ChainID, m.Nonce, m.IssuedAt)
	if m.ExpirationTime != "" {
		b.WriteString("\nExpiration Time: " + m.ExpirationTime)
	}
	if m.NotBefore != "" {
		b.WriteString("\nNot Before: " + m.NotBefore)
	}
	if m.RequestID != nil {
		b.WriteString("\nRequest ID: " + *m.RequestID)
	}
	if m.Resources != nil {
		b.WriteString("\nResources:")
		for _, x := range m.Resources {
			b.WriteString("\n- " + x)
		}
	}
	return b.String()
}

// Digest returns what the account signs: the hash of the text as wallets sign texts (EIP-191,
// version 0x45).
func Digest(text string) [32]byte {
	return crypto.Keccak256Hash([]byte("\x19Ethereum Signed Message:\n" + strconv.Itoa(len(text)) + text))
}

// A reader takes one line after another; why is the first thing that was wrong.
type reader struct {
	lines []string
	why   string
}

func (r *reader) fail(why string) {
	if r.why == "" {
		r.why = why
	}
	r.lines = nil
}

func (r *reader) more() bool { return len(r.lines) > 0 }

func (r *reader) next() string {
	if !r.more() {
		r.fail("it ends too early")
		return ""
	}
	line := r.lines[0]
	r.lines = r.lines[1:]
	return line
}

// head reads the lines above the URI; agent is true for those of SIWA.
func (r *reader) head() (m Message, agent bool) {
	line := r.next()
	domain, ok := strings.CutSuffix(line, asks)
	if !ok {
		domain, agent = strings.CutSuffix(line, asksAgent)
		ok = agent
	}
	if scheme, rest, has := strings.Cut(domain, "://"); has {
		m.Scheme, domain = scheme, rest
		ok = ok && schemes.MatchString(scheme)
	}
	if !ok || !domains.MatchString(domain) {
		r.fail("its first line does not say which domain asks")
	}
	m.Domain = domain
	m.Account = r.next()
	if sum, ok := Address(m.Account); !ok || sum != m.Account {
		r.fail("its second line is not an address with a checksum (EIP-55)")
	}
	blank := r.next()
	if m.Statement = r.next(); m.Statement != "" {
		if !statements.MatchString(m.Statement) {
			r.fail("its statement has characters that are not allowed")
		}
		blank += r.next()
	}
	if blank != "" {
		r.fail("an empty line is missing")
	}
	return m, agent
}

// need reads a line that has to be there.
func (r *reader) need(label string, form *regexp.Regexp) string {
	text, ok := strings.CutPrefix(r.next(), label)
	if !ok || form != nil && !form.MatchString(text) {
		r.fail("the line " + strings.TrimSuffix(label, ": ") + " is missing or malformed")
	}
	return text
}

// may reads a line that may be left out.
func (r *reader) may(label string, form *regexp.Regexp) (string, bool) {
	if !r.more() || !strings.HasPrefix(r.lines[0], label) {
		return "", false
	}
	return r.need(label, form), true
}
