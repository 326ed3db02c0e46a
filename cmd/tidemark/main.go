// Tidemark reads a MySQL binlog as a replica would and writes every row change to Kafka as a Debezium change event.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func main() {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tidemark:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode is that of an error.
func exitCode(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	if isFenced(err) {
		return exitFenced
	}
	return 1
}
