package main

import (
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// terminal is a kvscout in a pseudo terminal of its own, with an emulator that shows what a person would see.
type terminal struct {
	*testing.T
	cmd       *exec.Cmd
	ptmx, tty *os.File
	screen    *vt.SafeEmulator
	before    *term.State
	read      chan struct{} // closed when the last byte was shown
}

// startTerminal runs kvscout in a terminal of this size. The test's end kills it.
func startTerminal(t *testing.T, w, h int, env []string, args ...string) *terminal {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{T: t, cmd: kvscoutProcess(t, args...), ptmx: ptmx, tty: tty, screen: vt.NewSafeEmulator(w, h), read: make(chan struct{})}
	p.resize(w, h)
	if p.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.Env = append(append(p.cmd.Env, "TERM=xterm-256color", "COLORTERM=", "NO_COLOR="), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // what it writes; ends when both ends of the terminal are closed, waited for in the cleanup
		defer close(p.read)
		_, _ = io.Copy(p.screen, ptmx)
	}()
	answers := make(chan struct{})
	go func() { // what the emulator answers when it is asked; ends when it is closed, waited for in the cleanup
		defer close(answers)
		_, _ = io.Copy(ptmx, p.screen)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.tty.Close()
		_ = p.ptmx.Close()
		<-p.read
		_ = p.screen.InputPipe().(io.Closer).Close() // its Close races with its Read
		<-answers
	})
	return p
}

func (p *terminal) resize(w, h int) {
	p.Helper()
	p.screen.Resize(w, h)
	if err := pty.Setsize(p.ptmx, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		p.Fatal(err)
	}
}

// text is what the screen shows.
func (p *terminal) text() string { return ansi.Strip(p.screen.Render()) }

// sees waits until the screen shows each of parts.
func (p *terminal) sees(parts ...string) {
	p.Helper()
	p.until(func(text string) bool {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	}, strings.Join(parts, ", "))
}

func (p *terminal) until(holds func(text string) bool, what string) {
	p.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(p.text()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("%s: not in time; the screen is\n%s", what, p.text())
		}
	}
}

// types sends what keys send.
func (p *terminal) types(keys string) {
	p.Helper()
	if _, err := io.WriteString(p.ptmx, keys); err != nil {
		p.Fatal(err)
	}
}

// ended waits for the end, which must be with code 0 and leave the terminal as it was.
func (p *terminal) ended() {
	p.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("it ends with %v:\n%s", err, p.text())
	}
	after, err := term.GetState(int(p.tty.Fd()))
	if err != nil {
		p.Fatal(err)
	}
	if !reflect.DeepEqual(p.before, after) {
		p.Errorf("the terminal is %+v, was %+v", after, p.before)
	}
	_ = p.tty.Close()
	<-p.read // now nothing more is shown
	if p.screen.IsAltScreen() || p.screen.CursorHidden() {
		p.Errorf("its screen is not left, or the cursor not shown:\n%s", p.text())
	}
}
