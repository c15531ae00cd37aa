package main

import (
	"os"
	"os/signal"
	"syscall"
	_ "unsafe" // for linkname
)

// A test builds the program with this file: SIGUSR1 sets its wall clock an hour ahead, SIGUSR2 sets it right again. The monotonic
// clock stays as it is, as when NTP steps.

//go:linkname vdsoClockgettimeSym runtime.vdsoClockgettimeSym
var vdsoClockgettimeSym uintptr

var (
	clockReal uintptr // the function of the system
	clockStep int64   // seconds
)

func clockStepped() // in place of the system's function

func clockAddress() uintptr

func init() {
	clockReal, vdsoClockgettimeSym = vdsoClockgettimeSym, clockAddress()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			clockStep = 0
			if s == syscall.SIGUSR1 {
				clockStep = 3600
			}
		}
	}()
}
