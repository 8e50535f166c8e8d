// The scenarios with franz-go: franz BOOTSTRAP FEATURE.
package main

import (
	"compat/scenarios"
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

type client struct {
	seeds kgo.Opt
	kafka *kgo.Client
	admin *kadm.Client
}

func newClient(bootstrap string) scenarios.Client {
	seeds := kgo.SeedBrokers(bootstrap)
	kafka := scenarios.Got(kgo.NewClient(seeds))
	return &client{seeds, kafka, kadm.NewClient(kafka)}
}

// patience is a context that ends when what begins now must have happened.
func patience() context.Context {
	ending, cancel := context.WithTimeout(context.Background(), scenarios.Patience)
	time.AfterFunc(scenarios.Patience, cancel)
	return ending
}

func (c *client) CreateTopic(topic string, partitions int) {
	scenarios.Must(scenarios.Got(c.admin.CreateTopics(patience(), int32(partitions), 1, nil, topic)).Error())
}

func (c *client) Produce(topic string, partition int, values []string, codec string, first time.Time) {
	producer := scenarios.Got(kgo.NewClient(
		c.seeds, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[codec]),
	))
	defer producer.Close()
	sent := make([]*kgo.Record, len(values))
	for i, value := range values {
		sent[i] = &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte(value)}
		if !first.IsZero() {
			sent[i].Timestamp = first.Add(time.Duration(i) * time.Second)
		}
	}
	scenarios.Must(producer.ProduceSync(patience(), sent...).FirstErr())
}

func polled(consumer *kgo.Client, wait time.Duration) []scenarios.Record {
	ending, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	fetches := consumer.PollFetches(ending)
	var records []scenarios.Record
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			panic(err)
		}
	})
	fetches.EachRecord(func(each *kgo.Record) {
		records = append(records, scenarios.Record{Offset: each.Offset, Value: string(each.Value)})
	})
	return records
}

type member struct {
	kafka      *kgo.Client
	partitions scenarios.Partitions
}

func (c *client) NewMember(group, topic, instance string, isCooperative bool) scenarios.Member {
	m := &member{}
	gains := func(_ context.Context, _ *kgo.Client, found map[string][]int32) { m.partitions.Gains(found[topic]) }
	loses := func(_ context.Context, _ *kgo.Client, found map[string][]int32) { m.partitions.Loses(found[topic]) }
	balancer := kgo.RangeBalancer()
	if isCooperative {
		balancer = kgo.CooperativeStickyBalancer()
	}
	options := []kgo.Opt{
		c.seeds,
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(10 * time.Second),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.Balancers(balancer),
		kgo.OnPartitionsAssigned(gains),
		kgo.OnPartitionsRevoked(loses),
		kgo.OnPartitionsLost(loses),
	}
	if instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	m.kafka = scenarios.Got(kgo.NewClient(options...))
	return m
}

func (m *member) Poll() []scenarios.Record { return polled(m.kafka, scenarios.Turn) }

func (m *member) Commit() {
	err := m.kafka.CommitUncommittedOffsets(patience())
	if !errors.Is(err, kerr.RebalanceInProgress) && !errors.Is(err, kerr.IllegalGeneration) {
		scenarios.Must(err)
	}
}

func (m *member) Close() { m.kafka.Close() }

func (m *member) Partitions() *scenarios.Partitions { return &m.partitions }

func (c *client) Read(topic string, start int64, count int) []scenarios.Record {
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(5)}}
	consumer := scenarios.Got(kgo.NewClient(c.seeds, kgo.ConsumePartitions(from)))
	defer consumer.Close()
	polled(consumer, scenarios.Patience)
	consumer.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {0: {Epoch: -1, Offset: start}}})
	var records []scenarios.Record
	for len(records) < count {
		found := polled(consumer, scenarios.Patience)
		scenarios.Require(len(found) > 0, "%d records from %d, not %d", count, start, len(records))
		records = append(records, found...)
	}
	return records[:count]
}

func (c *client) OffsetForTime(topic string, at time.Time) int64 {
	found := scenarios.Got(c.admin.ListOffsetsAfterMilli(patience(), at.UnixMilli(), topic))
	scenarios.Must(found.Error())
	// kadm gives the end where no record is so late, with the timestamp -1
	if offset, _ := found.Lookup(topic, 0); offset.Timestamp >= 0 {
		return offset.Offset
	}
	return -1
}

func (c *client) Lag(group, topic string) int64 {
	lags := scenarios.Got(c.admin.Lag(patience(), group))
	scenarios.Must(lags.Error())
	found, _ := lags[group].Lag.Lookup(topic, 0)
	return found.Lag
}

func main() { scenarios.Run(newClient) }
