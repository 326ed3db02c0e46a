package server

import "context"

// Execute runs a statement of the user's own, such as heartbeat.action.query. On a connection that was lost it may run
// twice.
func (c *Conn) Execute(ctx context.Context, sql string) error {
	_, err := c.query(ctx, sql)
	return err
}
