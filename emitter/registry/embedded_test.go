package registry

import (
	"net"
	"strings"
	"testing"
)

func TestEmbedded(t *testing.T) {
	for _, addr := range []string{"localhost:0", ":0"} {
		e, err := StartEmbedded(addr)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := client(t, auto(e.URL()))
		if err := c.Resolve(t.Context(), valueSchema()); err != nil {
			t.Fatal(err)
		}
		if text, version, err := c.Latest(t.Context(), "p.d.t-value"); err != nil || text != valueText || version != 1 {
			t.Errorf("%q, %d, %v", text, version, err)
		}
		taken := strings.TrimPrefix(e.URL(), "http://")
		if _, err := StartEmbedded(taken); err == nil {
			t.Error("two registries at one address")
		} else {
			wantText(t, err.Error(), "embedded schema registry", "address already in use")
		}
		e.Close()
		e.Close()
		if conn, err := net.Dial("tcp", taken); err == nil {
			_ = conn.Close()
			t.Error("it still answers")
		}
	}
}
