package memcachedtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fake is a server in the test that understands what a client of the text and meta
// protocols needs, and misbehaves as its script says.
type Fake struct {
	Addr string

	listener net.Listener
	mu       sync.Mutex // guards the following
	script   Script
	version  string
	limit    int
	items    map[string]string
	commands []string
	conns    map[net.Conn]bool
	closed   chan struct{}
	running  sync.WaitGroup
}

// Script says what happens at a command, of which it gets the line. It is called
// for one command at a time, over all connections.
type Script func(line string) Action

// Action is what a Fake does at a command. The zero Action is to execute it.
type Action struct {
	Wait    <-chan struct{} // first wait for this
	Say     string          // say this
	Ignore  bool            // do not execute the command
	HangUp  bool            // then close the connection
	CutAt   int             // bytes of the answer after which the connection is closed; 0: none
	Further bool            // say it after the answer, not instead of it
}

// Refuse says line and does not execute the command.
func Refuse(line string) Action { return Action{Say: line + "\r\n", Ignore: true} }

// NewFake starts a Fake that says it is memcached 1.6.18, and ends it with the test.
func NewFake(t testing.TB) *Fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &Fake{
		Addr: l.Addr().String(), listener: l, version: "1.6.18", limit: 1 << 20,
		items: make(map[string]string), conns: make(map[net.Conn]bool), closed: make(chan struct{}),
	}
	f.running.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

// Play has commands from now on go by the script; nil: as they should.
func (f *Fake) Play(s Script) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = s
}

// Be has the Fake say that it is another version, with another limit of items.
func (f *Fake) Be(version string, itemSizeMax int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.limit = version, itemSizeMax
}

// Items returns a copy of what is stored.
func (f *Fake) Items() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := make(map[string]string, len(f.items))
	for k, v := range f.items {
		items[k] = v
	}
	return items
}

// Commands returns the command lines so far that begin with prefix.
func (f *Fake) Commands(prefix string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	for _, c := range f.commands {
		if strings.HasPrefix(c, prefix) {
			found = append(found, c)
		}
	}
	return found
}

// HangUp closes all connections, and forgets all items, as a restart does.
func (f *Fake) HangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
	f.items = make(map[string]string)
}

func (f *Fake) close() {
	close(f.closed)
	_ = f.listener.Close()
	f.HangUp()
	f.running.Wait()
}

func (f *Fake) accept() {
	for {
		nc, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[nc] = true
		f.mu.Unlock()
		f.running.Go(func() {
			f.serve(nc)
			_ = nc.Close()
			f.mu.Lock()
			delete(f.conns, nc)
			f.mu.Unlock()
		})
	}
}

func (f *Fake) serve(nc net.Conn) {
	r, w := bufio.NewReaderSize(nc, 1<<20), bufio.NewWriter(nc)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\r\n")
		act := f.act(line)
		if act.Wait != nil {
			if w.Flush() != nil {
				return
			}
			select {
			case <-act.Wait:
			case <-f.closed:
				return
			}
		}
		body, ok := readBody(r, line)
		if !ok {
			return
		}
		answer := ""
		if !act.Ignore {
			answer = f.execute(line, body)
		}
		switch {
		case act.Further:
			answer += act.Say
		case act.Say != "":
			answer = act.Say
		}
		if act.CutAt > 0 {
			answer, act.HangUp = answer[:min(act.CutAt, len(answer))], true
		}
		if _, err := w.WriteString(answer); err != nil {
			return
		}
		if r.Buffered() == 0 || act.HangUp {
			if w.Flush() != nil || act.HangUp {
				return
			}
		}
	}
}

// act notes a command and asks the script.
func (f *Fake) act(line string) Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commands = append(f.commands, line)
	if f.script == nil {
		return Action{}
	}
	return f.script(line)
}

// readBody reads the data block of a command that has one.
func readBody(r io.Reader, line string) (string, bool) {
	args := strings.Fields(line)
	at := map[string]int{"ms": 2, "set": 4, "add": 4}
	i := 0
	if len(args) > 0 {
		i = at[args[0]]
	}
	if i == 0 || i >= len(args) {
		return "", true
	}
	size, err := strconv.Atoi(args[i])
	if err != nil {
		return "", false
	}
	body := make([]byte, size+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", false
	}
	return string(body[:size]), true
}

// execute does what a command says and returns the answer.
func (f *Fake) execute(line, body string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	args := strings.Fields(line)
	if len(args) == 0 {
		return "ERROR\r\n"
	}
	switch args[0] {
	case "version":
		return "VERSION " + f.version + "\r\n"
	case "mn":
		return "MN\r\n"
	case "stats":
		return fmt.Sprintf("STAT item_size_max %d\r\nSTAT curr_items %d\r\nEND\r\n", f.limit, len(f.items))
	case "get":
		return f.values(args[1:])
	case "ms":
		f.items[args[1]] = body
		return ""
	case "set":
		f.items[args[1]] = body
		return "STORED\r\n"
	case "add":
		if _, there := f.items[args[1]]; there {
			return "NOT_STORED\r\n"
		}
		f.items[args[1]] = body
		return "STORED\r\n"
	case "md", "delete":
		_, there := f.items[args[1]]
		delete(f.items, args[1])
		switch {
		case args[0] == "md" && there:
			return ""
		case args[0] == "md":
			return "NF\r\n"
		case there:
			return "DELETED\r\n"
		}
		return "NOT_FOUND\r\n"
	}
	return "ERROR\r\n"
}

func (f *Fake) values(names []string) string {
	var b strings.Builder
	for _, name := range names {
		if v, ok := f.items[name]; ok {
			fmt.Fprintf(&b, "VALUE %s 0 %d\r\n%s\r\n", name, len(v), v)
		}
	}
	return b.String() + "END\r\n"
}
