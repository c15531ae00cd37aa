package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stoa/node"
	"stoa/protocol"
)

// asked are the settings that a file of setup shows, set or not.
const asked = "domain,base-url,listen,http-listen,tls-cert,tls-key,name,contact,data,database,master-key,operator-listen,trusted-proxies,chain," +
	"registrations,smtp,smtp-security,smtp-user,smtp-password,mail-from"

type setupCmd struct {
	Root  string `default:"/" placeholder:"DIR" help:"Where the files go: etc/stoa, etc/systemd/system and var/lib/stoa below it."`
	User  string `placeholder:"NAME" help:"Whom the node runs as. Default: stoa, who is made where root is /; yourself when you are not root."`
	Proxy bool   `help:"A proxy on this machine serves HTTPS for the domain: listen on 127.0.0.1:8080 behind it."`
	Yes   bool   `help:"Ask nothing: what no flag gives has its default."`
	Force bool   `help:"Write over files that are there and differ."`

	node.Config `settings:"Settings (each of stoa serve is a flag here too)" shown:"domain,name,contact,smtp,smtp-user,mail-from,database,chain,tls-cert,tls-key"`
}

func (c *setupCmd) Help() string {
	return "Asks for what a node needs, or takes it from flags, and writes the settings, the units of systemd and the link that makes the first operator. " +
		"Answers are read line by line from standard input. Files that are there and differ are shown, and kept without --force."
}

// Validate leaves the settings to the questions.
func (c *setupCmd) Validate() error { return nil }

// A written is a file of the set-up.
type written struct {
	path string
	mode fs.FileMode
	text string
}

func (c *setupCmd) Run(w *world) error {
	s, err := newSetup(w, c)
	if err == nil && !c.Yes {
		err = s.ask()
	}
	if err == nil {
		err = s.complete()
	}
	if err != nil {
		return err
	}
	files, err := s.files()
	if err == nil {
		err = s.write(files)
	}
	if err != nil {
		return err
	}
	return s.finish()
}

// A setup is one run of the command.
type setup struct {
	*setupCmd
	w        *world
	in       *bufio.Reader
	binary   string
	password string // of the mail server, typed
}

// plainPath is what a path in a unit may be: no shell and no unit reads it in another way.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9._/+-]*$`)

func newSetup(w *world, c *setupCmd) (*setup, error) {
	s := &setup{setupCmd: c, w: w, in: bufio.NewReader(w.stdin)}
	var err error
	if s.binary, err = os.Executable(); err != nil {
		return nil, err
	}
	if s.Root, err = filepath.Abs(s.Root); err != nil {
		return nil, err
	}
	if c.Data == "./data" {
		c.Data = s.at("var/lib/stoa")
	} else if c.Data, err = filepath.Abs(c.Data); err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"--root": s.Root, "--data": c.Data, "the path of the program": s.binary} {
		if !plainPath.MatchString(path) {
			return nil, usagef("%s: %q is no path of Latin letters, digits and . _ + - /", name, path)
		}
	}
	if me, err := user.Current(); err == nil && os.Geteuid() != 0 {
		c.User = cmp.Or(c.User, me.Username)
	}
	if c.User = cmp.Or(c.User, "stoa"); !unitUser.MatchString(c.User) {
		return nil, usagef("--user: %q is no name of a user", c.User)
	}
	if len(c.Domains) > 0 {
		return s, s.named(c.Domains[0])
	}
	return s, nil
}

var unitUser = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,30}$`)

// at is a path below the root.
func (s *setup) at(path string) string { return filepath.Join(s.Root, path) }

func (s *setup) config() string { return s.at("etc/stoa/stoa.toml") }

// named gives the node its domain, behind a proxy as the address.
func (s *setup) named(domain string) error {
	s.Domains = append([]string{domain}, s.Domains[min(1, len(s.Domains)):]...)
	if err := s.fault("domain"); err != nil || !s.Proxy {
		return err
	}
	s.BaseURL, s.Domains = "https://"+domain, nil
	if len(s.TrustedProxies) == 0 {
		s.TrustedProxies = []string{"127.0.0.0/8", "::1/128"}
	}
	return nil
}

// fault is what is wrong with settings of these names.
func (s *setup) fault(names ...string) error {
	for _, err := range s.Faults() {
		if name, _, _ := strings.Cut(err.Error(), ":"); slices.Contains(names, name) {
			return usage{err}
		}
	}
	return nil
}

// question asks until an answer fits; an empty one means the usual.
func (s *setup) question(text, usual string, take func(answer string) error) error {
	for {
		fmt.Fprint(s.w.stdout, text)
		if usual != "" {
			fmt.Fprintf(s.w.stdout, " [%s]", usual)
		}
		fmt.Fprint(s.w.stdout, ": ")
		line, err := s.in.ReadString('\n')
		if err != nil && line == "" {
			return usagef("the answers end here; give the rest as flags, with --yes")
		}
		err = take(strings.TrimSpace(line))
		if err == nil {
			return nil
		}
		fmt.Fprintf(s.w.stdout, "  %v\n", err)
	}
}

// ask asks for what no flag gave.
func (s *setup) ask() error {
	for _, q := range [][3]string{
		{"proxy", "Does a proxy on this machine serve HTTPS for the node? yes or no", "no"},
		{"domain", "Domain name of the node, such as stoa.example", ""},
		{"name", "What the node is called", "its domain"},
		{"contact", "Mail address or https: page to report problems to", ""},
		{"database", "Database, as postgres://…", "SQLite"},
		{"chain", "Chain of identities, as 1=https://rpc.example,0x8004…", "none"},
		{"smtp", "Mail server, as mail.example.org:587", "none"},
		{"mail-from", "Address that mail comes from", "stoa@ its domain"},
		{"smtp-user", "User of the mail server", "none"},
		{"smtp-password", "Password of the mail server", "none"},
	} {
		if s.settled(q[0]) {
			continue
		}
		hidden := q[0] == "smtp-password" && s.echo(false)
		err := s.question(q[1], q[2], func(answer string) error { return s.answer(q[0], answer) })
		if hidden {
			s.echo(true)
			fmt.Fprintln(s.w.stdout)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether a question needs no answer.
func (s *setup) settled(name string) bool {
	switch name {
	case "proxy", "domain":
		return s.Proxy && name == "proxy" || s.address()
	case "mail-from", "smtp-user":
		if s.SMTP == "" {
			return true
		}
	case "smtp-password":
		if s.SMTPUser == "" {
			return true
		}
	}
	for _, x := range s.Settings() {
		if x.Name == name {
			return x.Set
		}
	}
	return false
}

// answer takes the answer to a question, "" for the usual one.
func (s *setup) answer(name, answer string) error {
	switch {
	case name == "domain":
		return s.named(answer)
	case name == "contact":
		return s.contact(answer)
	case name == "smtp-password":
		s.password = answer
		return nil
	case answer == "":
		return nil
	}
	flag := s.w.command.Flag(name)
	err := flag.Put(answer)
	if err == nil && name != "smtp-user" { // its password is the next question
		err = s.fault(name)
	}
	if err != nil {
		_ = flag.Put("") // the usual, until the next answer
	}
	return err
}

// echo has a terminal show what is typed, or not, and reports whether it is one.
func (s *setup) echo(on bool) bool {
	f, ok := s.w.stdin.(*os.File)
	if !ok {
		return false
	}
	command := exec.Command("stty", map[bool]string{true: "echo", false: "-echo"}[on])
	command.Stdin = f
	return command.Run() == nil
}

// address reports whether the node has its public address.
func (s *setup) address() bool { return len(s.Domains) > 0 || s.BaseURL != "" }

// host is that of the public address.
func (s *setup) host() string {
	if len(s.Domains) > 0 {
		return s.Domains[0]
	}
	_, host, _ := strings.Cut(s.BaseURL, "://")
	host, _, _ = strings.Cut(host, ":")
	return host
}

// contact takes a bare mail address too.
func (s *setup) contact(answer string) error {
	if s.Contact = answer; strings.Contains(answer, "@") && !strings.Contains(answer, ":") {
		s.Contact = "mailto:" + answer
	}
	return s.fault("contact")
}

// complete fills in what nothing said, and refuses what does not fit together.
func (s *setup) complete() error {
	if !s.address() {
		return usagef("give the node its name: --domain stoa.example")
	}
	s.Name = cmp.Or(s.Name, s.host())
	if err := s.contact(s.Contact); err != nil {
		return err
	}
	if s.SMTP != "" {
		s.MailFrom = cmp.Or(s.MailFrom, "stoa@"+s.host())
	}
	if s.password != "" {
		s.SMTPPassword = s.at("etc/stoa/smtp-password")
	}
	s.BackupDir = cmp.Or(s.BackupDir, filepath.Join(s.Data, "backups"))
	return s.Config.Validate()
}

// files are what the set-up writes.
func (s *setup) files() ([]written, error) {
	settings, err := s.toml()
	if err != nil {
		return nil, err
	}
	files := []written{{s.config(), 0o640, settings}}
	if s.password != "" {
		files = append(files, written{s.SMTPPassword, 0o640, s.password + "\n"})
	}
	return append(files, s.units()...), nil
}

// toml is the file of the settings: those that are set, and as comments the others that many nodes need.
func (s *setup) toml() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Settings of the node, for %s --config %s serve. With serve --check all are tried.\n", s.binary, s.config())
	for _, x := range s.Settings() {
		if !x.Set && !slices.Contains(strings.Split(asked, ","), x.Name) {
			continue
		}
		value, err := json.Marshal(x.Value) // which is a value of TOML too
		if err != nil {
			return "", err
		}
		b.WriteString("\n")
		for _, part := range wrapped(x.Help) {
			b.WriteString("# " + part + "\n")
		}
		if !x.Set {
			b.WriteString("#")
		}
		fmt.Fprintf(&b, "%s = %s\n", x.Name, bytes.Replace(value, []byte("null"), []byte("[]"), 1))
	}
	return b.String(), nil
}

func wrapped(text string) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		if n := len(lines); n > 0 && len(lines[n-1])+len(word) < 100 {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// write writes the files, unless one that is there differs and is to be kept.
func (s *setup) write(files []written) error {
	kept := 0
	for _, f := range files {
		old, err := os.ReadFile(f.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && string(old) == f.text {
			continue
		}
		if err != nil {
			return err
		}
		kept++
		fmt.Fprintf(s.w.stdout, "%s is there; what would change:\n%s", f.path, changes(string(old), f.text))
	}
	if kept > 0 && !s.Force {
		overwrite := false
		if !s.Yes {
			err := s.question("Write over them? yes or no", "no", func(answer string) error { overwrite = strings.HasPrefix(answer, "y"); return nil })
			if err != nil {
				return err
			}
		}
		if !overwrite {
			return usagef("nothing was written: --force writes over them; to begin with what the file has: stoa --config %s setup …", s.config())
		}
	}
	if err := cmp.Or(s.makeUser(), os.MkdirAll(s.Data, 0o700), os.MkdirAll(cmp.Or(s.backups(), s.Data), 0o700)); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
		if err := replaceFile(f); err != nil {
			return err
		}
		if f.mode == 0o640 {
			if err := s.own(f.path, true); err != nil {
				return err
			}
		}
		fmt.Fprintln(s.w.stdout, "wrote", f.path)
	}
	return nil
}

// replaceFile writes a file whole or not at all; nobody reads it with a wider mode than its own.
func replaceFile(f written) error {
	fresh, err := os.CreateTemp(filepath.Dir(f.path), ".setup-*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name())
	_, err = fresh.WriteString(f.text)
	if err = errors.Join(err, fresh.Chmod(f.mode), fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), f.path)
}

// changes are the lines that only one of two texts has.
func changes(old, next string) string {
	var b bytes.Buffer
	only := func(mark, of, than string) {
		there := strings.Split(than, "\n")
		for line := range strings.SplitSeq(of, "\n") {
			if i := slices.Index(there, line); i >= 0 {
				there = slices.Delete(there, i, i+1)
			} else {
				fmt.Fprintf(&b, "  %s %s\n", mark, line)
			}
		}
	}
	only("-", old, next)
	only("+", next, old)
	return b.String()
}

// makeUser makes the user that the node runs as, on the machine itself.
func (s *setup) makeUser() error {
	if _, err := user.Lookup(s.User); err == nil || s.Root != "/" || os.Geteuid() != 0 {
		return nil
	}
	out, err := exec.Command("useradd", "--system", "--user-group", "--home-dir", s.Data, "--no-create-home", "--shell", "/usr/sbin/nologin",
		s.User).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make the user %s: %w: %s", s.User, err, bytes.TrimSpace(out))
	}
	fmt.Fprintln(s.w.stdout, "made the user", s.User)
	return nil
}

// own gives files that root wrote to the user of the node; the settings only to be read by its group.
func (s *setup) own(path string, read bool) error {
	u, err := user.Lookup(s.User)
	if err != nil || os.Geteuid() != 0 {
		return nil // whoever runs this runs the node too
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if read {
		return os.Lchown(path, 0, gid)
	}
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		return cmp.Or(err, os.Lchown(path, uid, gid))
	})
}

// finish checks what was written as serve would read it, makes the link of the first operator, and says what to do next.
func (s *setup) finish() error {
	var all cli
	if _, err := parse(&all, []string{"--config", s.config(), "serve"}); err != nil {
		return err
	}
	c := all.Serve.Config
	if err := checkSettings(s.w, c, false); err != nil {
		return fmt.Errorf("%w; the files are written: mend this, and run %s --config %s serve --check again. The first start prints the link that makes "+
			"the first operator", err, s.binary, s.config())
	}
	if err := s.operator(c); err != nil {
		return err
	}
	next := s.command()
	if _, err := os.Stat("/run/systemd/system"); err == nil && s.Root == "/" {
		next = "systemctl daemon-reload && systemctl enable --now stoa.socket stoa.service"
	}
	fmt.Fprintf(s.w.stdout, "start it:\n  %s\n", next)
	fmt.Fprintf(s.w.stdout, "a backup of each day is kept in %s: name another disk or a bucket in backup-dir, "+
		"and keep a copy of master.key elsewhere (docs/BACKUP.md)\n",
		c.BackupDir)
	return nil
}

// operator prints the link that makes the first operator.
func (s *setup) operator(c node.Config) error {
	c.LogLevel = "warn"
	a, err := node.OpenAdmin(s.w.ctx, c, newLogger(s.w.stderr, c))
	if err != nil {
		return err
	}
	link, err := node.Do(context.WithoutCancel(s.w.ctx), a, protocol.MakeOperatorLink, protocol.OperatorLinkOrder{})
	err = errors.Join(err, a.Close())
	for _, path := range []string{c.Data, cmp.Or(s.backups(), c.Data), cmp.Or(c.MasterKey, c.Data)} {
		err = errors.Join(err, s.own(path, false))
	}
	if protocol.CodeOf(err) == protocol.Conflict {
		fmt.Fprintln(s.w.stdout, "the node has an operator")
		return nil
	}
	if err == nil {
		fmt.Fprintf(s.w.stdout, "once the node runs, this link makes its first operator, once, within 24 hours:\n  %s\n", link.URL)
	}
	return err
}
