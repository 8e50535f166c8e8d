package main

import (
	"compat/scenarios"
	"errors"
	"slices"
	"strconv"

	"github.com/IBM/sarama"
)

type adminCalls struct {
	*client
	topic, group, other string
}

func (c *client) AdminCalls(topic, group string) []scenarios.Call {
	a := &adminCalls{c, topic, group, scenarios.NewName("made")}
	return []scenarios.Call{
		{Name: "CreateTopic", Make: func() { c.CreateTopic(a.other, 1) }},
		{Name: "ListTopics", Make: func() {
			_, isThere := scenarios.Got(a.admin.ListTopics())[a.other]
			scenarios.Require(isThere, "the topic among those listed")
		}},
		{Name: "CreatePartitions", Make: a.createPartitions},
		{Name: "DescribeTopics", Make: func() { scenarios.Got(a.admin.DescribeTopics([]string{topic})) }},
		{Name: "ListOffsets", Make: func() {
			scenarios.Require(a.offset(topic, sarama.OffsetNewest) == 20, "20 as the end")
		}},
		{Name: "DescribeConfig", Make: func() { a.config(sarama.TopicResource, topic, "cleanup.policy") }},
		{Name: "DescribeConfig of a broker", Make: a.describeConfigOfABroker},
		{Name: "IncrementalAlterConfig", Make: a.incrementalAlterConfig},
		{Name: "AlterConfig", Make: a.alterConfig},
		{Name: "ListConsumerGroups", Make: func() {
			_, isThere := scenarios.Got(a.admin.ListConsumerGroups())[group]
			scenarios.Require(isThere, "the group among those listed")
		}},
		{Name: "DescribeConsumerGroups", Make: func() {
			state := scenarios.Got(a.admin.DescribeConsumerGroups([]string{group}))[0].State
			scenarios.Require(state == "Empty", "state Empty, not %s", state)
		}},
		{Name: "ListConsumerGroupOffsets", Make: func() {
			scenarios.Require(a.committed(group, topic) == 20, "20 as the committed offset")
		}},
		{Name: "AlterConsumerGroupOffsets", Make: a.alterConsumerGroupOffsets},
		{Name: "DeleteConsumerGroupOffset", Make: func() { scenarios.Must(a.admin.DeleteConsumerGroupOffset(group, topic, 0)) }},
		{Name: "DeleteConsumerGroup", Make: func() { scenarios.Must(a.admin.DeleteConsumerGroup(group)) }},
		{Name: "DeleteRecords", Make: func() {
			scenarios.Must(a.admin.DeleteRecords(topic, map[int32]int64{0: 5}))
			first := a.offset(topic, sarama.OffsetOldest)
			scenarios.Require(first == 5, "5 as the first offset, not %d", first)
		}},
		{Name: "DescribeLogDirs", Make: a.describeLogDirs},
		{Name: "ListPartitionReassignments", Make: func() {
			scenarios.Got(a.admin.ListPartitionReassignments(topic, []int32{0}))
		}},
		{Name: "ListAcls", Make: a.listAcls},
		{Name: "DescribeClientQuotas", Make: func() { scenarios.Got(a.admin.DescribeClientQuotas(nil, false)) }},
		{Name: "DescribeUserScramCredentials", Make: func() { scenarios.Got(a.admin.DescribeUserScramCredentials(nil)) }},
		{Name: "DeleteTopic", Make: func() {
			scenarios.Must(a.admin.DeleteTopic(a.other))
			scenarios.Must(a.admin.DeleteTopic(topic))
		}},
	}
}

func (a *adminCalls) createPartitions() {
	scenarios.Must(a.admin.CreatePartitions(a.other, 3, nil, false))
	found := len(scenarios.Got(a.admin.DescribeTopics([]string{a.other}))[0].Partitions)
	scenarios.Require(found == 3, "three partitions, not %d", found)
}

func (a *adminCalls) config(resource sarama.ConfigResourceType, name, key string) string {
	entries := scenarios.Got(a.admin.DescribeConfig(sarama.ConfigResource{Type: resource, Name: name}))
	at := slices.IndexFunc(entries, func(each sarama.ConfigEntry) bool { return each.Name == key })
	scenarios.Require(at >= 0, "%s", key)
	return entries[at].Value
}

func (a *adminCalls) describeConfigOfABroker() {
	brokers, _, err := a.admin.DescribeCluster()
	scenarios.Must(err)
	a.config(sarama.BrokerResource, strconv.Itoa(int(brokers[0].ID())), "log.retention.ms")
}

func (a *adminCalls) incrementalAlterConfig() {
	value := "7000000"
	change := map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}
	scenarios.Must(a.admin.IncrementalAlterConfig(sarama.TopicResource, a.topic, change, false))
	scenarios.Require(a.config(sarama.TopicResource, a.topic, "retention.ms") == value, "the altered value")
}

func (a *adminCalls) alterConfig() {
	value := "8000000"
	scenarios.Must(a.admin.AlterConfig(sarama.TopicResource, a.topic, map[string]*string{"retention.ms": &value}, false))
	scenarios.Require(a.config(sarama.TopicResource, a.topic, "retention.ms") == value, "the altered value")
}

func (a *adminCalls) alterConsumerGroupOffsets() {
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{a.topic: {0: {Offset: 7, LeaderEpoch: -1}}}
	scenarios.Got(a.admin.AlterConsumerGroupOffsets(a.group, offsets, nil))
	scenarios.Require(a.committed(a.group, a.topic) == 7, "the altered offset")
}

func (a *adminCalls) describeLogDirs() {
	brokers, _, err := a.admin.DescribeCluster()
	scenarios.Must(err)
	for _, folder := range scenarios.Got(a.admin.DescribeLogDirs([]int32{brokers[0].ID()}))[brokers[0].ID()] {
		for _, topic := range folder.Topics {
			if topic.Topic == a.topic {
				scenarios.Require(topic.Partitions[0].Size > 0, "the size of the log")
				return
			}
		}
	}
	panic(scenarios.Missing("the log of the topic"))
}

// listAcls is content with what Kafka answers without an authorizer.
func (a *adminCalls) listAcls() {
	anything := sarama.AclFilter{
		ResourceType:              sarama.AclResourceAny,
		ResourcePatternTypeFilter: sarama.AclPatternAny,
		Operation:                 sarama.AclOperationAny,
		PermissionType:            sarama.AclPermissionAny,
	}
	_, err := a.admin.ListAcls(anything)
	scenarios.Require(err == nil || errors.Is(err, sarama.ErrSecurityDisabled), "SECURITY_DISABLED, not %v", err)
}
