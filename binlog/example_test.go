package binlog_test

import (
	"context"
	"fmt"
	"io"

	"github.com/tidemark-cdc/tidemark/binlog"
)

// The caller's loop over binlog files; over a server it is the same with binlog.Open.
func Example() {
	follow := func(ctx context.Context, files []string) error {
		src, err := binlog.OpenFiles(ctx, binlog.Config{
			Captured: func(database, _ string) bool { return database == "inventory" },
		}, files, binlog.Start{Oldest: true})
		if err != nil {
			return err
		}
		defer src.Close()
		for {
			ev, err := src.Read(ctx)
			if err == io.EOF { // bare: the end of the files
				return nil
			}
			if err != nil {
				return err
			}
			switch ev := ev.(type) {
			case *binlog.Rows:
				for ev.Next() {
					fmt.Println(ev.Table.Name, len(ev.After), "columns; restart behind it at", ev.OffsetAfter())
				}
				if err := ev.Err(); err != nil {
					return err
				}
			case *binlog.Boundary:
				fmt.Println("restart at", ev.Offset)
			case *binlog.SchemaChange:
				fmt.Println(len(ev.Tables), "tables to keep; then restart at", ev.Offset)
			case *binlog.Truncate:
				fmt.Println(ev.Table, "is empty; restart at", ev.Offset)
			}
		}
	}
	fmt.Println(follow(context.Background(), nil))
	// Output: no binlog files given
}
