//go:build !linux

package redistest

import "os/exec"

func startProcess(c *exec.Cmd) error { return c.Start() }
