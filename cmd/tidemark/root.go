package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build (-ldflags -X main.version=…).
var version = "dev"

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tidemark",
		Short: "MySQL rows to Kafka as Debezium change events, restarting at the exact row",
		Long: `Tidemark reads a MySQL binlog as a replica would, writes every row change to Kafka as a Debezium change event, and stores
Debezium's source offset only after Kafka has acknowledged the events that it covers.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().String("log-level", "info", "debug, info, warn or error; the log goes to standard error")
	root.AddCommand(runCommand(), tailCommand(), schemaCommand(), demoCommand(), demoWorkerCommand(), versionCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			goVersion := "unknown Go"
			if info, ok := debug.ReadBuildInfo(); ok {
				goVersion = info.GoVersion
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "tidemark %s (%s)\n", version, goVersion)
			return err
		},
	}
}
