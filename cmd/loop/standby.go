package loop

import (
	"context"

	"github.com/tidemark-cdc/tidemark/cmd/internal/standby"
)

// Standby is one of several processes, of which a group lets one run a connector. [NewStandby] makes it; one goroutine calls Run, which
// blocks until the process is to end.
type Standby = standby.Standby

// StandbyConfig says which group decides.
type StandbyConfig = standby.Config

// NewStandby begins to look at the group, without waiting. Close ends that.
func NewStandby(ctx context.Context, cfg StandbyConfig) (*Standby, error) {
	return standby.New(ctx, cfg)
}
