package registry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// Embedded is a schema registry in this process with Confluent's API, for trying out: it keeps schemas in memory only and
// checks no compatibility.
type Embedded struct {
	url    string
	server *http.Server
	served chan struct{} // closed by the goroutine that serves, when it ends
}

// StartEmbedded starts a registry on an address as net.Listen takes it, for instance localhost:8081, or localhost:0 for any
// free port.
func StartEmbedded(addr string) (*Embedded, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("starting the embedded schema registry: %w", err)
	}
	fake := srfake.NewRegistry(srfake.WithGlobalCompat(sr.CompatBackward))
	e := &Embedded{
		url:    "http://" + reachable(listener.Addr()),
		server: &http.Server{Handler: http.MaxBytesHandler(fake.Handler(), maxAnswer), ReadHeaderTimeout: 10 * time.Second},
		served: make(chan struct{}),
	}
	go func() {
		defer close(e.served)
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			_ = listener.Close() // clients see that it is gone
		}
	}()
	return e, nil
}

// reachable is an address of this machine at which a listener can be reached.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}

// URL is where the registry answers.
func (e *Embedded) URL() string { return e.url }

// Close stops the registry, ends its connections and forgets its schemas. It may be called twice.
func (e *Embedded) Close() {
	_ = e.server.Close() // only ever an error of the listener, which is gone in any case
	<-e.served
}
