package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// logger writes to standard error: for reading on a terminal, else one JSON object a line.
func logger(cmd *cobra.Command) (*zap.Logger, error) {
	text, err := cmd.Flags().GetString("log-level")
	if err != nil {
		return nil, err
	}
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", text)
	}
	var encoder zapcore.Encoder
	if term.IsTerminal(int(os.Stderr.Fd())) {
		c := zap.NewDevelopmentEncoderConfig()
		c.EncodeLevel = zapcore.CapitalColorLevelEncoder
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		encoder = zapcore.NewConsoleEncoder(c)
	} else {
		c := zap.NewProductionEncoderConfig()
		c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		c.TimeKey = "time"
		c.EncodeDuration = zapcore.StringDurationEncoder // with its unit
		encoder = zapcore.NewJSONEncoder(c)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level)), nil
}
