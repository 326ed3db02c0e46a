package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Waits between tries of a registry that gives no answer.
const (
	shortestWait = 500 * time.Millisecond
	longestWait  = 10 * time.Second
)

// patience is how long a request may take before it is said what is waited for: the limit for an answer is a minute or more.
const patience = 5 * time.Second

// errClosed is the cause when a client is closed while it waits.
var errClosed = errors.New("the client of the schema registry is closed")

// Schema is a schema that needs an id.
type Schema struct {
	Subject string // Apicurio: the id of the artifact
	Text    string // as the registry is to keep it

	// Record, the full name, and Topic are for messages only.
	Record, Topic string
}

// protocol is what is asked of one instance of a registry.
type protocol interface {
	// register returns the id of a schema of a subject, which it makes if there is none.
	register(ctx context.Context, subject, text string) (int64, error)
	// lookup returns the id of a schema that the subject has.
	lookup(ctx context.Context, subject, text string) (int64, error)
	latest(ctx context.Context, subject string) (latest, error)
}

// latest is the newest schema of a subject.
type latest struct {
	id      int64
	version int
	text    string
}

// cacheKey is a schema of a subject: thousands of texts of several kilobytes each need not be kept to be told apart.
type cacheKey struct {
	subject string
	text    [sha256.Size]byte
}

func keyOf(subject, text string) cacheKey { return cacheKey{subject, sha256.Sum256([]byte(text))} }

// Client knows the ids of schemas and asks a registry for those that it does not know yet. It is safe for concurrent use.
// Ids are kept for its life: they never change.
type Client struct {
	cfg       Config
	log       *zap.Logger
	names     settingNames
	scrub     scrubber
	transport *http.Transport
	urls      []string // without credentials
	protocols []protocol
	working   atomic.Int32 // index of the instance that answered last

	wait, maxWait, patience time.Duration

	closed context.Context // ends with Close
	close  context.CancelCauseFunc

	outage outage

	cache struct {
		sync.RWMutex
		ids   map[cacheKey]int64
		texts map[int64]string
		given map[int64]givenID
	}
}

// New makes a client without any request. It returns all faults of the configuration at once.
func New(cfg Config) (*Client, error) {
	instances, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.Group == "" {
		cfg.Group = "default"
	}
	c := &Client{
		cfg: cfg, log: cfg.Log, names: namesOf(&cfg), scrub: newScrubber(&cfg, instances),
		transport: newTransport(&cfg), wait: shortestWait, maxWait: longestWait, patience: patience,
	}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	c.outage.log = c.log
	c.closed, c.close = context.WithCancelCause(context.Background())
	c.cache.ids, c.cache.texts, c.cache.given = map[cacheKey]int64{}, map[int64]string{}, map[int64]givenID{}
	web := &http.Client{Transport: bounded{c.transport}}
	if cfg.ConnectTimeout > 0 && cfg.ReadTimeout > 0 {
		web.Timeout = max(cfg.ConnectTimeout+cfg.ReadTimeout, 0) // no limit if it is beyond what a Duration holds
	}
	for _, i := range instances {
		p, err := newProtocol(&cfg, i, web)
		if err != nil {
			return nil, err
		}
		c.urls, c.protocols = append(c.urls, i.base), append(c.protocols, p)
	}
	return c, nil
}

func newProtocol(cfg *Config, i instance, web *http.Client) (protocol, error) {
	if cfg.API == Apicurio {
		return &apicurio{
			base: i.base, user: i.user, password: i.password, token: cfg.Token,
			group: cfg.Group, ids: cfg.IDs, exact: cfg.AutoRegister, web: web,
		}, nil
	}
	return newConfluent(cfg, i, web)
}

// ID returns the id of a schema of a subject if it is in the cache. It does not block and makes no request.
func (c *Client) ID(subject, text string) (id int64, ok bool) {
	c.cache.RLock()
	defer c.cache.RUnlock()
	id, ok = c.cache.ids[keyOf(subject, text)]
	return id, ok
}

// Text returns the text of the schema that was asked for when id became known; never without Config.KeepTexts. It makes no
// request.
func (c *Client) Text(id int64) (text string, ok bool) {
	c.cache.RLock()
	defer c.cache.RUnlock()
	text, ok = c.cache.texts[id]
	return text, ok
}

// keep puts an id into the cache. Base is who gave it, empty when the registry's schema was compared with ours: else an id
// that was given for another schema before is an error, since all readers would take the one schema for the other.
func (c *Client) keep(s Schema, id int64, base string) error {
	c.cache.Lock()
	defer c.cache.Unlock()
	if base != "" {
		now := givenID{layoutOf(s.Text), s.Subject}
		if before, there := c.cache.given[id]; !there {
			c.cache.given[id] = now
		} else if before.layout != now.layout {
			return c.givenTwice(s, base, id, before.subject)
		}
	}
	c.cache.ids[keyOf(s.Subject, s.Text)] = id
	if _, there := c.cache.texts[id]; !there && c.cfg.KeepTexts {
		c.cache.texts[id] = s.Text
	}
	return nil
}

// Close ends all requests, those that wait included, and connections. What is in the cache can still be read. It may be
// called twice.
func (c *Client) Close() {
	c.close(errClosed)
	c.transport.CloseIdleConnections()
}

// untilClosed is ctx that ends with the client as well.
func (c *Client) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.closed.Err() != nil { // AfterFunc would cancel in a goroutine of its own, and a request might be answered before
		cancel(errClosed)
	}
	stop := context.AfterFunc(c.closed, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
