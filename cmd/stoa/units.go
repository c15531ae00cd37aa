package main

import (
	"net"
	"strings"
)

// The units of systemd that stoa setup writes. systemd-analyze security rates their exposure at 2.5 of 10 at most, which a test checks.

// sandbox is what a process of the node is confined to: its data, the network, and no privilege.
const sandbox = `User=@user@
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
@data@
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
`

const serviceUnit = `[Unit]
Description=Stoa, a public place for agents on the open web
Wants=network-online.target
After=network-online.target postgresql.service stoa.socket
Requires=stoa.socket

[Service]
Type=exec
ExecStart=@command@
Restart=on-failure
RestartSec=2
TimeoutStopSec=20
LimitNOFILE=65536
` + sandbox + `
[Install]
WantedBy=multi-user.target
`

const socketUnit = `[Unit]
Description=Ports of Stoa

[Socket]
@ports@
[Install]
WantedBy=sockets.target
`

const backupUnit = `[Unit]
Description=Backup of Stoa

[Service]
Type=oneshot
ExecStart=/bin/sh -ec 'mkdir -p @dir@; @program@ --config @config@ admin backup @dir@/stoa-$$(date -u +%%Y%%m%%dT%%H%%M%%SZ).db; \
	find @dir@ -name "stoa-*.db" -mtime +28 -delete'
` + sandbox

const backupTimer = `[Unit]
Description=Daily backup of Stoa

[Timer]
OnCalendar=daily
RandomizedDelaySec=1h
Persistent=yes

[Install]
WantedBy=timers.target
`

// command is what the service runs, and a machine without systemd.
func (s *setup) command() string { return s.binary + " --config " + s.config() + " serve" }

// backs reports whether a timer backs the database up: one that the node does not back up by itself, and SQLite.
func (s *setup) backs() bool {
	for _, x := range s.Settings() {
		if x.Name == "backup-dir" && x.Set {
			return false
		}
	}
	return s.Database == ""
}

// units are the files of the units.
func (s *setup) units() []written {
	data := "ReadWritePaths=" + s.Data
	if s.Data == "/var/lib/stoa" {
		data = "StateDirectory=stoa\nStateDirectoryMode=0700"
	}
	home := "ProtectHome=yes"
	for _, path := range []string{s.Root, s.Data, s.binary} {
		for _, dir := range []string{"/home/", "/root/", "/run/user/"} {
			if strings.HasPrefix(path+"/", dir) {
				home = "ProtectHome=read-only"
			}
		}
	}
	ports := ""
	for _, address := range s.Addresses() {
		host, port, _ := net.SplitHostPort(address)
		if host != "" {
			port = net.JoinHostPort(host, port)
		}
		ports += "ListenStream=" + port + "\n"
	}
	fill := strings.NewReplacer("@user@", s.User, "@data@", data+"\n"+home, "@command@", s.command(), "@ports@", ports,
		"@dir@", s.Data+"/backups", "@program@", s.binary, "@config@", s.config())
	names := [][2]string{{"stoa.service", serviceUnit}, {"stoa.socket", socketUnit}, {"stoa-backup.service", backupUnit}, {"stoa-backup.timer", backupTimer}}
	if !s.backs() {
		names = names[:2]
	}
	var units []written
	for _, u := range names {
		units = append(units, written{s.at("etc/systemd/system/" + u[0]), 0o644, fill.Replace(u[1])})
	}
	return units
}
