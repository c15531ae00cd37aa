package main

import "stoa/node/out/outbound"

// loopbackClient reaches the nodes of a local world.
var loopbackClient = outbound.New(outbound.Options{AllowPrivate: true, UserAgent: "stoa-dev"})
