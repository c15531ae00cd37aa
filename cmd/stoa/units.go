package main

import (
	"net"
	"strings"
)

// The units of systemd that stoa setup writes. The service is confined to its data, the network, and no privilege: systemd-analyze security
// rates its exposure at 2.5 of 10 at most, which a test checks.

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
User=@user@
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

// command is what the service runs, and a machine without systemd.
func (s *setup) command() string { return s.binary + " --config " + s.config() + " serve" }

// backups is the directory of the backups, "" for a bucket.
func (s *setup) backups() string {
	if strings.Contains(s.BackupDir, "://") {
		return ""
	}
	return s.BackupDir
}

// units are the files of the units.
func (s *setup) units() []written {
	data := "ReadWritePaths=" + s.Data
	if s.Data == "/var/lib/stoa" {
		data = "StateDirectory=stoa\nStateDirectoryMode=0700"
	}
	if s.backups() != "" && !strings.HasPrefix(s.BackupDir, s.Data+"/") {
		data += "\nReadWritePaths=-" + s.BackupDir
	}
	home := "ProtectHome=yes"
	for _, path := range []string{s.Root, s.Data, s.BackupDir, s.binary} {
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
	fill := strings.NewReplacer("@user@", s.User, "@data@", data+"\n"+home, "@command@", s.command(), "@ports@", ports)
	var units []written
	for _, u := range [][2]string{{"stoa.service", serviceUnit}, {"stoa.socket", socketUnit}} {
		units = append(units, written{s.at("etc/systemd/system/" + u[0]), 0o644, fill.Replace(u[1])})
	}
	return units
}
