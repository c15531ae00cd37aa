package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"stoa/cmd/stoa/client"
	"stoa/identity/key"
	"stoa/protocol/a2a"
)

type a2aCmd struct {
	Send a2aSendCmd `cmd:"" help:"Write to an agent, and show its answer."`
	Get  a2aGetCmd  `cmd:"" help:"Show a task."`
}

// a2aFlags are as whom an agent is spoken to.
type a2aFlags struct {
	Key   string        `env:"STOA_KEY" placeholder:"FILE" help:"Sign with this private JWK."`
	Agent string        `placeholder:"ID" help:"Sign as this chain identity, eip155:<chain>:<registry>:<agent>."`
	Token string        `placeholder:"T" help:"API token of the agent's node, or the read token of a task."`
	Wait  time.Duration `default:"2m" help:"How long to wait for an answer."`
	JSON  bool          `name:"json" help:"Print results unchanged, each on one line."`
	Card  string        `arg:"" name:"card" help:"Address of the agent's card, or of its endpoint."`
}

type a2aSendCmd struct {
	a2aFlags
	Text    string `arg:"" help:"The message; - reads standard input."`
	Context string `placeholder:"ID" help:"Continue this context."`
	Task    string `placeholder:"ID" help:"Add to this task, while it waits."`
	Stream  bool   `help:"Show each change as it comes."`
}

func (c *a2aSendCmd) Help() string {
	return "Speaks A2A 1.0, or 0.3 where the card has no other. Without a key and a token it solves the proof of work that a node of this kind asks of guests, " +
		"and prints the read token with which the task is read later. Waits until the task has ended or asks something."
}

type a2aGetCmd struct {
	a2aFlags
	Task string `arg:"" help:"Id of the task."`
}

func (f *a2aFlags) meet(w *world) (*client.Agent, error) {
	o := client.Options{AgentID: f.Agent, Token: f.Token, UserAgent: "stoa-a2a/" + buildVersion()}
	if f.Wait <= 0 {
		return nil, usagef("--wait must be positive")
	}
	if f.Key != "" {
		raw, err := os.ReadFile(f.Key)
		if err != nil {
			return nil, err
		}
		if o.Key, err = key.ParsePair(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Key, err)
		}
	}
	return client.Meet(w.ctx, f.Card, o, f.Wait)
}

func (c *a2aSendCmd) Run(w *world) error {
	if c.Text == "-" {
		raw, err := io.ReadAll(io.LimitReader(w.stdin, a2a.MaxBody))
		if err != nil {
			return err
		}
		c.Text = strings.TrimSpace(string(raw))
	}
	if c.Text == "" {
		return usagef("the message is empty")
	}
	agent, err := c.meet(w)
	if err != nil {
		return err
	}
	out := &a2aOutput{w: plain{w.stdout}, raw: c.JSON, agent: agent, guest: c.Key == "" && c.Token == ""}
	method := a2a.SendMessage
	if c.Stream {
		method = a2a.StreamMessage
	}
	end := time.Now().Add(c.Wait)
	if err := agent.Call(w.ctx, method, agent.Message(c.Text, c.Context, c.Task), out.show); err != nil {
		return err
	}
	for pause := time.Second; out.waits() && time.Now().Before(end); pause = min(2*pause, 15*time.Second) {
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-time.After(min(pause, time.Until(end))):
		}
		if err := agent.Call(w.ctx, a2a.GetTask, map[string]any{"id": out.task.ID}, out.show); err != nil {
			return err
		}
	}
	if out.waits() && !c.JSON {
		fmt.Fprintf(out.w, "No answer yet; later: stoa a2a get %s %s\n", c.Card, out.task.ID)
	}
	return nil
}

func (c *a2aGetCmd) Run(w *world) error {
	agent, err := c.meet(w)
	if err != nil {
		return err
	}
	out := &a2aOutput{w: plain{w.stdout}, raw: c.JSON, agent: agent}
	return agent.Call(w.ctx, a2a.GetTask, map[string]any{"id": c.Task}, out.show)
}

// The objects of both versions, as far as they are shown.
type (
	shownPart struct {
		Text, URL, Filename string
		Data                json.RawMessage
		Raw                 []byte
		File                *struct{ URI, Name string }
	}
	shownMessage struct{ Parts []shownPart }
	shownStatus  struct {
		State     string
		Message   *shownMessage
		Timestamp string
	}
	shownArtifact struct {
		ArtifactID, Name string
		Parts            []shownPart
	}
	shownTask struct {
		ID, ContextID, TaskID string
		Kind                  string
		Status                *shownStatus
		Artifacts             []shownArtifact
		Artifact              *shownArtifact
		Parts                 []shownPart
		Metadata              map[string]json.RawMessage

		Task, Message, StatusUpdate, ArtifactUpdate *shownTask
	}
)

// An a2aOutput prints what an agent answers, each thing once.
type a2aOutput struct {
	w     io.Writer
	raw   bool
	guest bool
	agent *client.Agent
	task  shownTask
	said  map[string]bool
}

// waits reports whether the task has neither ended nor asks something.
func (o *a2aOutput) waits() bool {
	return o.task.ID != "" && o.task.Status != nil && (o.task.Status.State == "submitted" || o.task.Status.State == "working")
}

func (o *a2aOutput) show(result json.RawMessage) error {
	if o.raw {
		var line bytes.Buffer
		if err := json.Compact(&line, result); err != nil {
			return err
		}
		fmt.Fprintln(o.w, line.String())
	}
	var t shownTask
	if err := json.Unmarshal(result, &t); err != nil {
		return fmt.Errorf("the answer is neither task nor message: %w", err)
	}
	for _, inner := range []*shownTask{t.Task, t.Message, t.StatusUpdate, t.ArtifactUpdate} {
		if inner != nil {
			t = *inner
			break
		}
	}
	if len(t.Parts) > 0 { // a message
		o.parts("", t.Parts)
		return nil
	}
	if t.ID != "" {
		if o.task.ID == "" {
			o.once("task "+t.ID+"\ncontext "+t.ContextID, "")
		}
		o.task.ID = t.ID
		o.token(t)
	}
	for _, a := range append(t.Artifacts, single(t.Artifact)...) {
		if o.once("", "artifact "+a.ArtifactID) {
			o.parts(a.Name, a.Parts)
		}
	}
	if t.Status != nil {
		t.Status.State = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(t.Status.State, "TASK_STATE_")), "_", "-")
		o.task.Status = t.Status
		if o.once("state "+t.Status.State, t.Status.State+t.Status.Timestamp) && t.Status.Message != nil {
			o.parts("", t.Status.Message.Parts)
		}
	}
	return nil
}

func single(a *shownArtifact) []shownArtifact {
	if a == nil {
		return nil
	}
	return []shownArtifact{*a}
}

// token keeps the read token of a guest's task, and prints it.
func (o *a2aOutput) token(t shownTask) {
	var token string
	if raw := t.Metadata[a2a.ExtContact+"/readToken"]; o.guest && json.Unmarshal(raw, &token) == nil && token != "" {
		o.agent.Token = token
		o.once("token "+token, "token")
	}
}

// once prints a line the first time, unless results are printed unchanged.
func (o *a2aOutput) once(line, name string) bool {
	if name == "" {
		name = line
	}
	if o.raw || o.said[name] {
		return false
	}
	if o.said == nil {
		o.said = map[string]bool{}
	}
	if o.said[name] = true; line != "" {
		fmt.Fprintln(o.w, line)
	}
	return true
}

func (o *a2aOutput) parts(name string, parts []shownPart) {
	if o.raw {
		return
	}
	if name != "" {
		fmt.Fprintln(o.w, name+":")
	}
	for _, p := range parts {
		text := p.Text
		switch {
		case len(p.Data) > 0:
			text = string(p.Data)
		case p.URL != "":
			text = p.URL
		case p.File != nil && p.File.URI != "":
			text = p.File.URI
		case p.File != nil:
			text = "file " + p.File.Name
		case len(p.Raw) > 0:
			text = fmt.Sprintf("file %s, %s", p.Filename, plural(len(p.Raw), "byte"))
		}
		fmt.Fprintln(o.w, "  "+strings.ReplaceAll(text, "\n", "\n  "))
	}
}
