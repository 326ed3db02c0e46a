package main

import (
	"context"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// lateHistory is the beginning of a schema history whose definitions are of a later position than that at which the stream
// begins. It is written when the stream has come there: before that it would be wrong for every restart.
type lateHistory struct {
	at       offset.Offset
	texts    []server.TableText
	charsets server.Charsets
	opts     schema.CatalogOptions
}

// beginHistory begins the configured history, which is empty, with the tables as they are on the server at a position; if
// past, when the stream has come there.
func (s *schemas) beginHistory(ctx context.Context, past, fresh bool, l lateHistory) error {
	if s.history == nil {
		return nil
	}
	if past {
		s.log.Info("the schema history is begun with the tables as they are on the server now, when the stream has come that far: until then no Debezium could go on with it",
			zap.Stringer("server", l.at))
		s.late, s.unwritten = &l, l.at
		return nil
	}
	if !fresh {
		s.log.Info("the schema history is empty, though an offset is stored; nothing has happened on the server since, so it is begun with the tables as they are", zap.Stringer("offset", l.at))
	}
	return s.begin(ctx, l.texts, l.opts, l.charsets, l.at)
}

// adoptedLater notes that an adopted history begins with definitions of a later position than that of the stream, and
// tells the reader.
func (s *schemas) adoptedLater(cfg *binlog.Config, stored offset.Offset) {
	for i := len(cfg.History) - 1; i >= 0; i-- {
		e := &cfg.History[i]
		if !e.Snapshot || e.File == "" {
			continue
		}
		at := offset.Offset{File: e.File, Pos: e.Pos}
		if set, err := offset.ParseGTIDSet(e.GTIDs); e.GTIDs != "" && err == nil {
			at.GTIDs = set
		}
		p := pointOf(at)
		p.Before = true
		if covers, known := stored.Covers(p); known && !covers {
			s.unwritten, cfg.CatalogAt = at, at
		}
		return
	}
}

// written says whether the history has what a statement did, although nobody has written its record: the definitions with
// which it begins are those behind the statement.
func (s *schemas) written(behind offset.Offset) bool {
	if s.unwritten.IsZero() {
		return false
	}
	if covers, known := s.unwritten.Covers(pointOf(behind)); covers && known {
		return true
	}
	s.unwritten = offset.Offset{}
	return false
}

// reached begins the history if the stream has come far enough with an event.
func (s *schemas) reached(ctx context.Context, event binlog.Event) error {
	var o offset.Offset
	switch event := event.(type) {
	case *binlog.Boundary:
		o = event.Offset
	case *binlog.SchemaChange:
		o = event.Offset
	case *binlog.Truncate:
		o = event.Offset
	default:
		return nil
	}
	l := s.late
	if covers, known := o.Covers(pointOf(l.at)); !covers && known {
		return nil
	}
	s.late = nil
	if err := s.begin(ctx, l.texts, l.opts, l.charsets, l.at); err != nil {
		return err
	}
	s.log.Info("the schema history is begun: from here on a Debezium could go on with it", zap.Stringer("offset", o))
	return nil
}

func pointOf(o offset.Offset) offset.Position {
	return offset.Position{File: o.File, Pos: o.Pos, GTIDs: o.GTIDs}
}

// lateSource is a reader whose history is begun on the way.
type lateSource struct {
	*binlog.Reader
	schemas *schemas
}

func (l *lateSource) Read(ctx context.Context) (binlog.Event, error) {
	event, err := l.Reader.Read(ctx)
	if err != nil || l.schemas.late == nil {
		return event, err
	}
	return event, l.schemas.reached(ctx, event)
}
