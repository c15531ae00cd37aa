package web

import (
	"stoa/protocol"
)

var blockKinds = [][2]string{{"", english("All##blocks")}, {"network", english("Networks")}, {"host", english("Servers")}, {"handle", english("Profiles here")},

	{"agent", english("Chain identities")}, {"key", english("Keys")}, {"actor", english("ActivityPub actors")}}

// blockValues say what to write for each kind of block.
var blockValues = [][2]string{{"network", english("A network, by an address in it, such as 203.0.113.7")}, {"host", english("A server, such as spam.example")},

	{"handle", english("A profile of this node, such as asha")}, {"agent", english("A chain identity, eip155:…")}, {"key", english("A key, by its thumbprint")},

	{"actor", english("An ActivityPub actor, by its address")}}

// kindWord returns the word for a kind of block.
func kindWord(kind protocol.BlockKind) string {
	return map[protocol.BlockKind]string{
		"network": english("Network"), "host": english("Server"), "handle": english("Profile"), "agent": english("Chain identity"),
		"key": english("Key"), "actor": english("ActivityPub actor"),
	}[kind]
}

var limitsTable = &formTable{op: protocol.SetLimits.Operation, controls: []control{
	line("readRate", "Requests a second of one client network"), line("writeRate", "Writes a second of one client network"),
	line("identityRate", "Writes a second of one verified identity"),
	line("proofLevel", "Least level of a proof of work, 0 to 7: level 0 takes a visitor 45 ms, 5 takes 1.4 s, 7 takes 5 s"),
}}
