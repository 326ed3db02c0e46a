package producer_test

import (
	"context"
	"net"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

func init() {
	producer.SetNewClient(func(properties map[string]string, dial func(context.Context, string, string) (net.Conn, error)) (*kclient.Client, func(), error) {
		client, err := kafka.NewClient(kafka.ClientConfig{Properties: properties, Dial: dial})
		if err != nil {
			return nil, nil, err
		}
		return client.Internal(), client.Close, nil
	})
}
