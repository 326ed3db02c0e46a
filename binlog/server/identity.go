package server

import (
	"context"
	"fmt"
	"sync"
)

// identity is which server a [Conn] asks. What was proven of one says nothing of another, and behind one address there may be two,
// in a failover or by a balancer: each further connection must be to the same one.
type identity struct {
	mu   sync.Mutex
	uuid string // "": not known yet
}

// is says whether uuid is that of the server, which is the first one that is told. "" is not known, and may be any.
func (i *identity) is(uuid string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.uuid == "" {
		i.uuid = uuid
	}
	return uuid == "" || uuid == i.uuid
}

func (i *identity) known() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.uuid
}

// another is the error for a connection that led elsewhere.
func (c *Conn) another(uuid string) error {
	return faultf(ErrMoved, "%s is another server than a moment ago: server_uuid %s, before %s. After a failover that is tried again from the beginning; "+
		"if it stays so, the address leads to several servers in turn: point database.hostname at one", c.name(), uuid, c.who.known())
}

// recognise asks a new connection which server it leads to.
func (c *Conn) recognise(ctx context.Context, sess *session) error {
	if c.who.known() == "" {
		return nil
	}
	res, err := sess.query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','server_uuid','server_uid','server_id')")
	if err != nil {
		return fmt.Errorf("which server it is: %w", err)
	}
	if uuid := serverUUID(variables(res)); !c.who.is(uuid) {
		return c.another(uuid)
	}
	return nil
}

// serverUUID is Info.UUID.
func serverUUID(v map[string]string) string {
	switch {
	case !isMariaDB(v["version"]):
		return v["server_uuid"]
	case v["server_uid"] != "":
		return v["server_uid"]
	}
	return "server_id " + v["server_id"]
}
