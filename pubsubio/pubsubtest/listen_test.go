package pubsubtest

import (
	"net"
	"slices"
	"testing"
)

// A read that had failed in an earlier test was still looking for its server, and took
// the messages of the next one that was given the same port.
func TestListen_NoAddressComesTwice(t *testing.T) {
	var a addresses
	ports := []int{1, 1, 2, 1, 2, 2, 3}
	open := make(map[int]bool)
	next := func() (net.Listener, error) {
		port := ports[0]
		ports = ports[1:]
		open[port] = true
		return &fakeListener{port: port, closed: func() { open[port] = false }}, nil
	}
	var got []int
	for len(ports) > 0 {
		lis, err := a.fresh(next)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, lis.Addr().(*net.TCPAddr).Port)
		_ = lis.Close()
	}
	if want := []int{1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("listened at %v, not at %v", got, want)
	}
	for port, isOpen := range open {
		if isOpen {
			t.Errorf("port %d is still taken", port)
		}
	}
}

func TestStart_TheAddressOfAServerThatIsClosedCanBeAskedFor(t *testing.T) {
	first := New(t)
	first.Close()
	again := New(t, func(c *Config) { c.Addr = first.Endpoint() })
	if again.Endpoint() != first.Endpoint() {
		t.Errorf("listens at %s, not at %s", again.Endpoint(), first.Endpoint())
	}
}

type fakeListener struct {
	net.Listener
	port   int
	closed func()
}

func (l *fakeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port} }

func (l *fakeListener) Close() error {
	l.closed()
	return nil
}
