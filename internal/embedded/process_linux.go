package embedded

import (
	"os/exec"
	"syscall"
)

// detach takes the command out of our process group, so that a Ctrl-C on the
// terminal does not reach it.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endWithParent has the kernel end the command when its parent, even killed,
// is gone.
func endWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
