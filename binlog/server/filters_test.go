package server

import (
	"errors"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func TestFilters(t *testing.T) {
	f := newFake()
	c := f.connect(t)
	if got, err := c.Filters(t.Context()); err != nil || got != "" {
		t.Errorf("no replica: %q, %v", got, err)
	}
	f.source = "primary.example"
	if got, err := c.Filters(t.Context()); err != nil || got != "" {
		t.Errorf("a replica without filters: %q, %v", got, err)
	}
	f.filter = "shop.audit"
	if got, err := c.Filters(t.Context()); err != nil || got != "Replicate_Ignore_Table=shop.audit" {
		t.Errorf("a replica with a filter: %q, %v", got, err)
	}
	f.fail["SHOW REPLICA STATUS"] = mysql.NewError(1227, "Access denied")
	if _, err := c.Filters(t.Context()); !errors.Is(err, ErrAccess) {
		t.Errorf("without the privilege: %v", err)
	}
}
