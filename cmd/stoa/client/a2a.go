package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"stoa/identity/httpsig"
	"stoa/protocol/a2a"
	"stoa/protocol/pow"
)

// An AgentCard is what is read of a card of A2A 1.0 or 0.3.
type AgentCard struct {
	Name       string
	Interfaces []struct{ URL, ProtocolBinding, ProtocolVersion string } `json:"supportedInterfaces"`
	URL        string
	Transport  string                            `json:"preferredTransport"`
	Additional []struct{ URL, Transport string } `json:"additionalInterfaces"`

	Schemes map[string]struct {
		APIKey                          *struct{ Name, Description string }   `json:"apiKeySecurityScheme"`
		HTTP                            *struct{ Scheme, Description string } `json:"httpAuthSecurityScheme"`
		Type, Name, Scheme, Description string
	} `json:"securitySchemes"`
	Security   []struct{ Schemes map[string]any } `json:"securityRequirements"`
	Security03 []map[string]any                   `json:"security"`
}

// An Agent is another agent that is spoken to by A2A, over JSON-RPC.
type Agent struct {
	Card    AgentCard
	Version string // of the interface

	endpoint *url.URL
	target   httpsig.Target
	c        *Client
	http     *http.Client
	Token    string // bearer token: that of the options, or the read token of a task
}

// A RemoteError is a JSON-RPC error of an agent.
type RemoteError struct {
	Status  int
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("the agent refused it (%d): %s", e.Code, e.Message)
}

// Meet reads the card at an address, of the card itself or of an endpoint below which it is, and chooses an interface. An exchange lasts no
// longer than wait.
func Meet(ctx context.Context, address string, o Options, wait time.Duration) (*Agent, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is not the address of an agent card, such as https://node.example/a2a/asha/agent-card.json", address)
	}
	origin := &url.URL{Scheme: u.Scheme, Host: u.Host}
	c, err := New(origin.String(), o)
	if err != nil {
		return nil, err
	}
	a := &Agent{c: c, Token: o.Token, http: o.HTTP}
	if a.http == nil {
		a.http = guarded(u, o, wait, maxAnswer)
	}
	places := []string{address}
	if !strings.HasSuffix(u.Path, ".json") {
		places = []string{strings.TrimSuffix(address, "/") + "/.well-known/agent-card.json", strings.TrimSuffix(address, "/") + "/agent-card.json"}
	}
	for _, place := range places {
		if err = a.read(ctx, place); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err := a.choose(); err != nil {
		return nil, err
	}
	if o.Token != "" && (a.endpoint.Scheme != u.Scheme || a.endpoint.Host != u.Host) {
		return nil, fmt.Errorf("the card's endpoint is at %s, and not at %s: the token is not sent there", a.endpoint.Host, u.Host)
	}
	return a, a.admits()
}

func (a *Agent) read(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	res, err := a.http.Do(r)
	if err != nil {
		return fmt.Errorf("read the card: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("read the card: %s answered %s", address, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&a.Card); err != nil {
		return fmt.Errorf("read the card: %s is no agent card: %w", address, err)
	}
	return nil
}

// choose chooses the first interface that is JSON-RPC of 1.0, otherwise of 0.3.
func (a *Agent) choose() error {
	var offers []string
	at := map[string]string{}
	offer := func(u, binding, version string) {
		offers = append(offers, binding+" "+version)
		if version, err := a2a.Negotiate(version, ""); err == nil && binding == "JSONRPC" && at[version] == "" {
			at[version] = u
		}
	}
	for _, i := range a.Card.Interfaces {
		offer(i.URL, i.ProtocolBinding, i.ProtocolVersion)
	}
	if a.Card.URL != "" {
		transport := a.Card.Transport
		if transport == "" {
			transport = "JSONRPC"
		}
		offer(a.Card.URL, transport, a2a.Legacy)
	}
	for _, i := range a.Card.Additional {
		offer(i.URL, i.Transport, a2a.Legacy)
	}
	for _, a.Version = range []string{a2a.Version, a2a.Legacy} {
		if at[a.Version] == "" {
			continue
		}
		u, err := url.Parse(at[a.Version])
		if err != nil || u.Host == "" {
			return fmt.Errorf("the card's endpoint %q is no address", at[a.Version])
		}
		a.endpoint = u
		a.target, err = httpsig.ParseTarget(u.Scheme + "://" + u.Host)
		return err
	}
	return fmt.Errorf("the card offers %s; this speaks JSONRPC 1.0 and 0.3", strings.Join(slices.Compact(offers), ", "))
}

// admits reports what the card wants and this has not.
func (a *Agent) admits() error {
	var needs [][]string
	for _, n := range a.Card.Security {
		var names []string
		for name := range n.Schemes {
			names = append(names, name)
		}
		needs = append(needs, names)
	}
	for _, n := range a.Card.Security03 {
		var names []string
		for name := range n {
			names = append(names, name)
		}
		needs = append(needs, names)
	}
	var wants []string
	for _, names := range needs {
		slices.Sort(names)
		var lacks []string
		for _, name := range names {
			if has, what := a.has(name); !has {
				lacks = append(lacks, what)
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		if want := strings.Join(lacks, " and "); !slices.Contains(wants, want) {
			wants = append(wants, want)
		}
	}
	if len(wants) == 0 {
		return nil
	}
	return fmt.Errorf("%s wants one of:\n  %s", a.Card.Name, strings.Join(wants, "\n  "))
}

// has reports whether this has what a scheme wants, and says what that is.
func (a *Agent) has(name string) (bool, string) {
	s := a.Card.Schemes[name]
	field, scheme, text := "", "", s.Description
	switch {
	case s.APIKey != nil:
		field, text = s.APIKey.Name, s.APIKey.Description
	case s.HTTP != nil:
		scheme, text = s.HTTP.Scheme, s.HTTP.Description
	case s.Type == "apiKey":
		field = s.Name
	default:
		scheme = s.Scheme
	}
	switch {
	case strings.EqualFold(field, "Signature"):
		return !a.c.o.Key.IsZero(), "--key (" + name + "): " + text
	case strings.EqualFold(field, "Proof-Of-Work"): // a refusal brings the challenge
		return true, ""
	case strings.EqualFold(scheme, "bearer"):
		return a.Token != "", "--token (" + name + "): " + text
	}
	return false, name + ", which this does not know: " + text
}

// Call calls a method by its name in 1.0. Each result, one or those of a stream, is given to each.
func (a *Agent) Call(ctx context.Context, method string, params any, each func(json.RawMessage) error) error {
	if a.Version == a2a.Legacy {
		method = a2a.LegacyMethod(method)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	proof := ""
	for try := 0; ; try++ {
		err := a.once(ctx, body, proof, each)
		refused, is := errors.AsType[*RemoteError](err)
		if !is || refused.Status != http.StatusUnauthorized || try == maxProofs {
			return err
		}
		var data []struct{ Challenge *pow.Challenge }
		if json.Unmarshal(refused.Data, &data) != nil {
			data = make([]struct{ Challenge *pow.Challenge }, 1)
			_ = json.Unmarshal(refused.Data, &data[0])
		}
		i := slices.IndexFunc(data, func(d struct{ Challenge *pow.Challenge }) bool { return d.Challenge != nil })
		if i < 0 {
			return err
		}
		s, solving := pow.SolveParallel(ctx, *data[i].Challenge, a.c.o.Workers)
		if solving != nil {
			return fmt.Errorf("solve proof of work: %w", solving)
		}
		proof = s.Encode()
	}
}

func (a *Agent) once(ctx context.Context, body []byte, proof string, each func(json.RawMessage) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if a.Version != a2a.Legacy {
		r.Header.Set("A2A-Version", a.Version)
	}
	if proof != "" {
		r.Header.Set("Proof-Of-Work", proof)
	}
	if a.Token != "" {
		r.Header.Set("Authorization", "Bearer "+a.Token)
	}
	if o := a.c.o; !o.Key.IsZero() {
		if o.AgentID != "" {
			r.Header.Set("Agent-Identity", o.AgentID)
		}
		if err := httpsig.SignRequest(r, a.target, body, httpsig.SignOptions{Key: o.Key.Signer(), Algorithm: a.c.alg}); err != nil {
			return fmt.Errorf("sign request: %w", err)
		}
	}
	res, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media != "text/event-stream" {
		raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return err
		}
		return answered(res.StatusCode, raw, each)
	}
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadString('\n')
		if data, is := strings.CutPrefix(line, "data:"); is {
			if err := answered(res.StatusCode, []byte(data), each); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
	}
}

// answered reads a JSON-RPC answer.
func answered(status int, raw []byte, each func(json.RawMessage) error) error {
	var a struct {
		Result json.RawMessage
		Error  *RemoteError
	}
	switch err := json.Unmarshal(raw, &a); {
	case err == nil && a.Error != nil:
		a.Error.Status = status
		return a.Error
	case err != nil || a.Result == nil:
		return fmt.Errorf("the agent answered %d, and not by JSON-RPC", status)
	}
	return each(a.Result)
}

// Message returns the parameters of a message of plain text, in the version of the agent.
func (a *Agent) Message(text, contextID, taskID string) map[string]any {
	m := map[string]any{"messageId": rand.Text(), "role": "ROLE_USER", "parts": []any{map[string]any{"text": text}}}
	if a.Version == a2a.Legacy {
		m["kind"], m["role"], m["parts"] = "message", "user", []any{map[string]any{"kind": "text", "text": text}}
	}
	if contextID != "" {
		m["contextId"] = contextID
	}
	if taskID != "" {
		m["taskId"] = taskID
	}
	return map[string]any{"message": m}
}
