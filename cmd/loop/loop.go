// Package loop is the pipeline of tidemark run, and its choice of one of several processes, for the simulation in it/sim, which may not import what is internal to cmd.
package loop

import "github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"

// Pipeline is the product's one loop, its restarts and its saver. One goroutine calls Run, which blocks until the
// pipeline ends.
type Pipeline = pipeline.Pipeline
