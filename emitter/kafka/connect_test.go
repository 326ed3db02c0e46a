package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestConnect hands over a connection that is logged in, on which nothing of the client that made it is left.
func TestConnect(t *testing.T) {
	c := newCluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "ada", "secret"))
	cl := open(t, ClientConfig{Properties: properties(c, login("ada", "secret")...)})
	conn, err := cl.Internal().Connect(t.Context(), c.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if newest := kmsg.NewPtrProduceRequest().MaxVersion(); conn.Produce != newest {
		t.Errorf("version %d, want %d", conn.Produce, newest)
	}
	if conn.AddPartitionsToTxn < 3 || conn.EndTxn < 5 || conn.Transactions != 2 {
		t.Errorf("versions %d and %d, transaction.version %d", conn.AddPartitionsToTxn, conn.EndTxn, conn.Transactions)
	}
	req := kmsg.NewPtrMetadataRequest()
	for number := range int32(3) {
		if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, number)); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 8)
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		if got := int32(binary.BigEndian.Uint32(head[4:])); got != number {
			t.Errorf("answer to %d, want %d", got, number)
		}
		if _, err := io.CopyN(&bytes.Buffer{}, conn, int64(binary.BigEndian.Uint32(head))-4); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConnectFails(t *testing.T) {
	c := newCluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "ada", "secret"))
	cl := open(t, ClientConfig{Properties: properties(c, login("ada", "wrong")...)})
	if _, err := cl.Internal().Connect(t.Context(), c.ListenAddrs()[0]); !errors.Is(err, io.EOF) { // a real broker says why
		t.Errorf("%v", err)
	}
	if _, err := cl.Internal().Connect(t.Context(), answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n")); err == nil || !strings.Contains(err.Error(), "HTTP") {
		t.Errorf("%v", err)
	}
	cl.Close()
	if _, err := cl.Internal().Connect(t.Context(), c.ListenAddrs()[0]); !errors.Is(err, kgo.ErrClientClosed) {
		t.Errorf("%v", err)
	}
}
