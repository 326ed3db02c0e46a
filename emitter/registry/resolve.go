package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// lookups is how many requests Lookup makes at a time.
const lookups = 8

// request is what is asked of a registry.
type request int

const (
	registering request = iota
	lookingUp
	askingLatest
)

// Resolve returns when the id of a schema is in the cache: at once if it is there, else after a request. When no instance
// of the registry can be reached or they answer 408, 429, 500, 502, 503 or 504 it tries again without end, 0.5 s to 10 s
// apart, until ctx ends or Close is called; that is said once in the log, and once when it is over. So is an answer that
// takes longer than some seconds. Any other answer is a [*Refused] at once.
func (c *Client) Resolve(ctx context.Context, s Schema) error {
	if _, ok := c.ID(s.Subject, s.Text); ok {
		return nil
	}
	ctx, done := c.untilClosed(ctx)
	defer done()
	seen := "" // why it is tried again
	ended := func() error {
		return fmt.Errorf("waiting for the id of the schema of subject %q: %w%s", s.Subject, context.Cause(ctx), seen)
	}
	for wait := c.wait; ; wait = min(2*wait, c.maxWait) {
		start := time.Now()
		err := c.find(ctx, s, c.cfg.AutoRegister)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ended()
		}
		if _, ok := errors.AsType[*unavailable](err); !ok {
			return err
		}
		seen = "; " + err.Error()
		c.outage.failed(s, c.urls, start, err)
		// Processes that lost the registry at one moment are not to come back at one.
		select {
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		case <-ctx.Done():
			return ended()
		}
	}
}

// Lookup asks for the ids of schemas and puts those that the registry knows into the cache, eight at a time; it takes the
// next schema when it can ask for it. It registers nothing and returns no error, since what is missing is asked for again by
// [Client.Resolve]: a schema that is not there is left out, and the first failure ends it and goes to the log. It returns
// when all requests have ended.
func (c *Client) Lookup(ctx context.Context, schemas iter.Seq[Schema]) {
	ctx, done := c.untilClosed(ctx)
	defer done()
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	asked := 0
	for s := range schemas {
		if inner.Err() != nil {
			break
		}
		if _, ok := c.ID(s.Subject, s.Text); ok {
			continue
		}
		asked++
		group.Go(func() error {
			if inner.Err() != nil {
				return nil
			}
			err := c.find(inner, s, false)
			if refused, ok := errors.AsType[*Refused](err); ok && !refused.general {
				return nil // about this schema only; if it is ever needed, it is said then
			}
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		err = context.Cause(ctx) // as when it ended between two requests
	}
	if err == nil {
		return
	}
	c.outage.gaveUp()
	if errors.Is(ctx.Err(), context.Canceled) { // by Close as well
		return
	}
	c.log.Warn("schemas could not be looked up in the registry; each is asked for when its first record comes",
		zap.Int("asked", asked), zap.String("urls", strings.Join(c.urls, ", ")), zap.String("reason", err.Error()))
}

// Latest returns the newest schema of a subject and its version, 0 if the version is no number. Each instance of the
// registry is asked once at most. The error is a [*Refused] if the registry answered.
func (c *Client) Latest(ctx context.Context, subject string) (text string, version int, err error) {
	ctx, done := c.untilClosed(ctx)
	defer done()
	var found latest
	_, err = c.ask(ctx, askingLatest, Schema{Subject: subject}, func(p protocol) (err error) {
		found, err = p.latest(ctx, subject)
		return err
	})
	return found.text, found.version, err
}

// find gets the id of a schema by one request to each instance of the registry at most, and puts it into the cache.
func (c *Client) find(ctx context.Context, s Schema, register bool) error {
	var id int64
	var base string
	var err error
	switch {
	case register:
		base, err = c.ask(ctx, registering, s, func(p protocol) (err error) {
			id, err = p.register(ctx, s.Subject, s.Text)
			return err
		})
	case c.cfg.UseLatest && !c.cfg.AutoRegister:
		id, err = c.findLatest(ctx, s)
	default:
		base, err = c.ask(ctx, lookingUp, s, func(p protocol) (err error) {
			id, err = p.lookup(ctx, s.Subject, s.Text)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.keep(s, id, base)
}

// findLatest takes the id of the latest schema, if that describes the bytes that are written by ours.
func (c *Client) findLatest(ctx context.Context, s Schema) (int64, error) {
	var found latest
	base, err := c.ask(ctx, askingLatest, s, func(p protocol) (err error) {
		found, err = p.latest(ctx, s.Subject)
		return err
	})
	if err != nil {
		return 0, err
	}
	why := differs(found.text, s.Text)
	if why == "" {
		return found.id, nil
	}
	return 0, &Refused{
		Subject: s.Subject, URL: base, Reason: c.reason(why),
		Advice: fmt.Sprintf("register the record's schema (tidemark schema prints it) as the latest, or set %s=false", c.names.latest),
		what: fmt.Sprintf("the latest schema of subject %q, version %d in the schema registry at %s, does not describe the records %s that are written",
			s.Subject, found.version, base, s.Record),
	}
}

// ask asks the instances of the registry one after the other, from the one that answered last, until one gives a definite
// answer; base is that instance. The error is a *Refused, an *unavailable, or the cause of ctx's end.
func (c *Client) ask(ctx context.Context, what request, s Schema, f func(protocol) error) (base string, err error) {
	first := int(c.working.Load())
	var reasons []string
	anyHeals := false
	for i := range c.protocols {
		n := (first + i) % len(c.protocols)
		start := time.Now()
		said := time.AfterFunc(c.patience, func() { c.outage.slow(s, c.urls[n], start) })
		err := f(c.protocols[n])
		said.Stop()
		if ctx.Err() != nil && err != nil {
			return "", context.Cause(ctx)
		}
		definite, ok := errors.AsType[*answer](err)
		if err == nil || ok && !definite.heals() {
			c.working.Store(int32(n))
			c.outage.answered(c.urls[n])
			if err == nil {
				return c.urls[n], nil
			}
			return c.urls[n], c.refused(what, s, c.urls[n], definite)
		}
		why, heals := c.judge(err, c.urls[n])
		anyHeals = anyHeals || heals
		reasons = append(reasons, c.urls[n]+": "+why)
	}
	if anyHeals {
		return "", &unavailable{"the schema registry cannot be used: " + strings.Join(reasons, "; ")}
	}
	return "", &Refused{
		Subject: s.Subject, URL: c.urls[first], Reason: strings.Join(reasons, "; "),
		what: "the schema registry cannot be used", general: true,
	}
}
