package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// recall is where to go on when there is no offset any more though this process has stored one, as when the topic was deleted under it:
// the stream would begin anew, at another place, and what lies between would never come. It is an error when more may be in the topics
// than that offset says.
func (p *Pipeline) recall() (offset.Offset, error) {
	if errors.Is(p.ended, emitter.ErrUnknownOutcome) {
		text, _ := json.Marshal(p.stored.String()) // of a text there is no error
		return offset.Offset{}, fmt.Errorf("the stored offset is gone, as when its topic was deleted, and it is not known whether the last transaction was committed, so this stops rather than writes it twice. "+
			"Look into the topics for it, and then start with \"snapshot.mode\":\"no_data\" and \"start.position\" where they end. Before that transaction it was \"start.position\":%s", text)
	}
	p.Log.Warn("the stored offset is gone, as when its topic was deleted; the stream goes on from the last one that this process stored, which is stored again. "+
		"To begin anew, stop this process before the offset is deleted", zap.Stringer("offset", p.stored))
	return p.stored, nil
}
