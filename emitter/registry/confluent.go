package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/twmb/franz-go/pkg/sr"
)

// confluent speaks to one instance of Confluent's API. Only what all registries have in common is relied on: the status,
// and the id in the answer.
type confluent struct{ client *sr.Client }

func newConfluent(cfg *Config, i instance, web *http.Client) (*confluent, error) {
	opts := []sr.ClientOpt{sr.URLs(i.base), sr.HTTPClient(web), sr.UserAgent(userAgent)}
	if i.user != "" {
		opts = append(opts, sr.BasicAuth(i.user, i.password))
	}
	if cfg.Token != "" {
		opts = append(opts, sr.BearerToken(cfg.Token))
	}
	if cfg.Normalize {
		opts = append(opts, sr.DefaultParams(sr.Normalize))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making the client of the schema registry: %w", err)
	}
	return &confluent{client}, nil
}

func (c *confluent) register(ctx context.Context, subject, text string) (int64, error) {
	id, err := c.client.RegisterSchema(ctx, subject, sr.Schema{Schema: text, Type: sr.TypeAvro}, -1, -1)
	return goodID(int64(id), ofConfluent(err))
}

func (c *confluent) lookup(ctx context.Context, subject, text string) (int64, error) {
	found, err := c.client.LookupSchema(ctx, subject, sr.Schema{Schema: text, Type: sr.TypeAvro})
	return goodID(int64(found.ID), ofConfluent(err))
}

func (c *confluent) latest(ctx context.Context, subject string) (latest, error) {
	found, err := c.client.SchemaByVersion(ctx, subject, -1)
	id, err := goodID(int64(found.ID), ofConfluent(err))
	if err != nil {
		return latest{}, err
	}
	if found.Type != sr.TypeAvro {
		return latest{}, &answer{message: fmt.Sprintf("the latest schema is of type %s, not AVRO", found.Type)}
	}
	return latest{id, found.Version, found.Schema.Schema}, nil
}

// ofConfluent turns the client's error for a status into ours.
func ofConfluent(err error) error {
	response, ok := errors.AsType[*sr.ResponseError](err)
	if !ok {
		return err
	}
	a := &answer{status: response.StatusCode, code: response.ErrorCode, message: response.Message}
	if len(response.Raw) == 0 || a.message == "" { // no JSON object
		a.message, a.foreign = string(response.Raw), true
	}
	a.tooLarge = a.isTooLarge()
	a.incompatible = a.status == http.StatusConflict && !a.limit()
	return a
}

func goodID(id int64, err error) (int64, error) {
	if err == nil && id <= 0 {
		return 0, errNoID
	}
	return id, err
}
