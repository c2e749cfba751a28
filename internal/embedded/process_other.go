//go:build !linux

package embedded

import (
	"os/exec"
	"syscall"
)

// detach takes the command out of our process group, so that a Ctrl-C on the
// terminal does not reach it.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endWithParent does nothing here: only Linux can end a child with its
// parent. A guard that is killed, as opposed to its user, leaves the server.
func endWithParent(*exec.Cmd) {}
