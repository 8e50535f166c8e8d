// The scenarios with sarama: sarama BOOTSTRAP FEATURE.
package main

import (
	"compat/scenarios"
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

type client struct {
	brokers []string
	kafka   sarama.Client
	admin   sarama.ClusterAdmin
}

func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	return config
}

func newClient(bootstrap string) scenarios.Client {
	brokers := []string{bootstrap}
	kafka := scenarios.Got(sarama.NewClient(brokers, newConfig()))
	return &client{brokers, kafka, scenarios.Got(sarama.NewClusterAdminFromClient(kafka))}
}

func (c *client) CreateTopic(topic string, partitions int) {
	detail := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}
	scenarios.Must(c.admin.CreateTopic(topic, detail, false))
	scenarios.Must(c.kafka.RefreshMetadata(topic))
}

func (c *client) Produce(topic string, partition int, values []string, codec string, first time.Time) {
	config := newConfig()
	config.Producer.Compression = codecs[codec]
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	producer := scenarios.Got(sarama.NewSyncProducer(c.brokers, config))
	defer producer.Close()
	sent := make([]*sarama.ProducerMessage, len(values))
	for i, value := range values {
		sent[i] = &sarama.ProducerMessage{Topic: topic, Partition: int32(partition), Value: sarama.StringEncoder(value)}
		if !first.IsZero() {
			sent[i].Timestamp = first.Add(time.Duration(i) * time.Second)
		}
	}
	scenarios.Must(producer.SendMessages(sent))
}

// member is also the handler of its consumer group.
type member struct {
	topic      string
	group      sarama.ConsumerGroup
	records    chan scenarios.Record
	stop       context.CancelFunc
	ended      chan error
	partitions scenarios.Partitions
}

func (c *client) NewMember(group, topic, instance string, isCooperative bool) scenarios.Member {
	if isCooperative {
		panic(scenarios.NotInClient("sarama has no cooperative assignor"))
	}
	config := newConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 10 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	config.Consumer.Group.InstanceId = instance
	going, stop := context.WithCancel(context.Background())
	m := &member{
		topic:   topic,
		group:   scenarios.Got(sarama.NewConsumerGroup(c.brokers, group, config)),
		records: make(chan scenarios.Record, 1000),
		stop:    stop,
		ended:   make(chan error, 1),
	}
	go func() {
		var err error
		for err == nil && going.Err() == nil {
			err = m.group.Consume(going, []string{topic}, m)
		}
		m.ended <- err
	}()
	return m
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.partitions.Gains(session.Claims()[m.topic])
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	m.partitions.Loses(session.Claims()[m.topic])
	return nil
}

// ConsumeClaim commits whenever it has read all that came.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		m.records <- scenarios.Record{Offset: message.Offset, Value: string(message.Value)}
		session.MarkMessage(message, "")
		if len(claim.Messages()) == 0 {
			session.Commit()
		}
	}
	return nil
}

func (m *member) Poll() []scenarios.Record {
	var records []scenarios.Record
	timeout := time.After(scenarios.Turn)
	for {
		select {
		case record := <-m.records:
			records = append(records, record)
			if len(m.records) == 0 {
				return records
			}
		case err := <-m.ended:
			scenarios.Must(err)
			panic("the consumer has ended")
		case <-timeout:
			return records
		}
	}
}

func (m *member) Commit() {}

func (m *member) Close() {
	m.stop()
	if err := <-m.ended; err != nil && !errors.Is(err, context.Canceled) {
		panic(err)
	}
	scenarios.Must(m.group.Close())
}

func (m *member) Partitions() *scenarios.Partitions { return &m.partitions }

func (c *client) Read(topic string, start int64, count int) []scenarios.Record {
	consumer := scenarios.Got(sarama.NewConsumerFromClient(c.kafka))
	partition := scenarios.Got(consumer.ConsumePartition(topic, 0, start))
	defer partition.AsyncClose()
	var records []scenarios.Record
	for len(records) < count {
		select {
		case each := <-partition.Messages():
			records = append(records, scenarios.Record{Offset: each.Offset, Value: string(each.Value)})
		case <-time.After(scenarios.Patience):
			panic(scenarios.Missing("records"))
		}
	}
	return records
}

func (c *client) OffsetForTime(topic string, at time.Time) int64 {
	return scenarios.Got(c.kafka.GetOffset(topic, 0, at.UnixMilli()))
}

func (c *client) offset(topic string, at int64) int64 {
	found := scenarios.Got(c.admin.ListOffsets(map[string]map[int32]int64{topic: {0: at}}, nil))[topic][0]
	scenarios.Require(errors.Is(found.Err, sarama.ErrNoError), "an offset, not %v", found.Err)
	return found.Offset
}

func (c *client) committed(group, topic string) int64 {
	found := scenarios.Got(c.admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})).GetBlock(topic, 0)
	scenarios.Require(found != nil && found.Offset >= 0, "a committed offset")
	return found.Offset
}

func (c *client) Lag(group, topic string) int64 {
	return c.offset(topic, sarama.OffsetNewest) - c.committed(group, topic)
}

func main() { scenarios.Run(newClient) }
