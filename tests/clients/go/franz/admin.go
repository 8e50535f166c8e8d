package main

import (
	"compat/scenarios"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// adminCalls are kadm's, and for what that hasn't kmsg's.
type adminCalls struct {
	kafka               *kgo.Client
	admin               *kadm.Client
	topic, group, other string
	partition           kadm.TopicsSet
}

func (c *client) AdminCalls(topic, group string) []scenarios.Call {
	partition := kadm.TopicsSet{}
	partition.Add(topic, 0)
	a := &adminCalls{c.kafka, c.admin, topic, group, scenarios.NewName("made"), partition}
	return []scenarios.Call{
		{Name: "CreateTopics", Make: func() { c.CreateTopic(a.other, 1) }},
		{Name: "ListTopics", Make: func() {
			scenarios.Require(scenarios.Got(a.admin.ListTopics(patience())).Has(a.other), "the topic among those listed")
		}},
		{Name: "UpdatePartitions", Make: a.updatePartitions},
		{Name: "DescribeTopicConfigs", Make: func() { a.config("cleanup.policy") }},
		{Name: "DescribeBrokerConfigs", Make: a.describeBrokerConfigs},
		{Name: "AlterTopicConfigs", Make: a.alterTopicConfigs},
		{Name: "AlterTopicConfigsState", Make: a.alterTopicConfigsState},
		{Name: "ListConfigResources", Make: func() { scenarios.Must(scenarios.Got(a.admin.ListConfigResources(patience())).Err) }},
		{Name: "FindGroupCoordinators", Make: func() { scenarios.Must(a.admin.FindGroupCoordinators(patience(), group).Error()) }},
		{Name: "ListGroups", Make: func() {
			_, isThere := scenarios.Got(a.admin.ListGroups(patience()))[group]
			scenarios.Require(isThere, "the group among those listed")
		}},
		{Name: "DescribeGroups", Make: func() {
			found := scenarios.Got(a.admin.DescribeGroups(patience(), group))[group]
			scenarios.Require(found.State == "Empty", "state Empty, not %s", found.State)
		}},
		{Name: "FetchOffsets", Make: func() {
			scenarios.Require(a.committed() == 20, "20 as the committed offset")
		}},
		{Name: "CommitOffsets", Make: a.commitOffsets},
		{Name: "DeleteOffsets", Make: func() { scenarios.Must(scenarios.Got(a.admin.DeleteOffsets(patience(), group, partition)).Error()) }},
		{Name: "DeleteGroups", Make: func() { scenarios.Must(scenarios.Got(a.admin.DeleteGroups(patience(), group)).Error()) }},
		{Name: "ListEndOffsets", Make: a.listEndOffsets},
		{Name: "OffsetForLeaderEpoch", Make: a.offsetForLeaderEpoch},
		{Name: "DeleteRecords", Make: a.deleteRecords},
		{Name: "DescribeAllLogDirs", Make: a.describeAllLogDirs},
		{Name: "DescribeQuorum (kmsg)", Make: a.describeQuorum},
		{Name: "DescribeProducers", Make: a.describeProducers},
		{Name: "ListPartitionReassignments", Make: func() {
			scenarios.Got(a.admin.ListPartitionReassignments(patience(), partition))
		}},
		{Name: "DescribeACLs", Make: a.describeACLs},
		{Name: "DescribeClientQuotas", Make: func() { scenarios.Got(a.admin.DescribeClientQuotas(patience(), false, nil)) }},
		{Name: "DescribeUserSCRAMs", Make: func() { scenarios.Got(a.admin.DescribeUserSCRAMs(patience())) }},
		{Name: "DeleteTopics by id (kmsg)", Make: a.deleteTopicById},
		{Name: "DeleteTopics", Make: func() { scenarios.Must(scenarios.Got(a.admin.DeleteTopics(patience(), topic)).Error()) }},
	}
}

func (a *adminCalls) updatePartitions() {
	scenarios.Must(scenarios.Got(a.admin.UpdatePartitions(patience(), 3, a.other)).Error())
	found := scenarios.Got(a.admin.ListTopics(patience(), a.other))[a.other]
	scenarios.Require(len(found.Partitions) == 3, "three partitions, not %d", len(found.Partitions))
}

func (a *adminCalls) config(name string) string {
	found := scenarios.Got(scenarios.Got(a.admin.DescribeTopicConfigs(patience(), a.topic)).On(a.topic, nil))
	scenarios.Must(found.Err)
	return valueOf(found, name)
}

func valueOf(found kadm.ResourceConfig, name string) string {
	for _, each := range found.Configs {
		if each.Key == name {
			return each.MaybeValue()
		}
	}
	panic(scenarios.Missing(name))
}

func (a *adminCalls) describeBrokerConfigs() {
	brokers := scenarios.Got(a.admin.ListBrokers(patience())).NodeIDs()
	for _, found := range scenarios.Got(a.admin.DescribeBrokerConfigs(patience(), brokers...)) {
		scenarios.Must(found.Err)
		valueOf(found, "log.retention.ms")
	}
}

func retention(value string) []kadm.AlterConfig {
	return []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
}

func (a *adminCalls) alterTopicConfigs() {
	altered := scenarios.Got(a.admin.AlterTopicConfigs(patience(), retention("7000000"), a.topic))
	scenarios.Must(scenarios.Got(altered.On(a.topic, nil)).Err)
	scenarios.Require(a.config("retention.ms") == "7000000", "the altered value")
}

func (a *adminCalls) alterTopicConfigsState() {
	altered := scenarios.Got(a.admin.AlterTopicConfigsState(patience(), retention("8000000"), a.topic))
	scenarios.Must(scenarios.Got(altered.On(a.topic, nil)).Err)
	scenarios.Require(a.config("retention.ms") == "8000000", "the altered value")
}

func (a *adminCalls) commitOffsets() {
	offsets := kadm.Offsets{}
	offsets.AddOffset(a.topic, 0, 7, -1)
	scenarios.Must(a.admin.CommitAllOffsets(patience(), a.group, offsets))
	scenarios.Require(a.committed() == 7, "the committed offset")
}

func (a *adminCalls) committed() int64 {
	found, _ := scenarios.Got(a.admin.FetchOffsets(patience(), a.group)).Lookup(a.topic, 0)
	scenarios.Must(found.Err)
	return found.At
}

func (a *adminCalls) listEndOffsets() {
	found, _ := scenarios.Got(a.admin.ListEndOffsets(patience(), a.topic)).Lookup(a.topic, 0)
	scenarios.Must(found.Err)
	scenarios.Require(found.Offset == 20, "20 as the end, not %d", found.Offset)
}

func (a *adminCalls) offsetForLeaderEpoch() {
	asked := kadm.OffsetForLeaderEpochRequest{}
	asked.Add(a.topic, 0, 0)
	found := scenarios.Got(a.admin.OffsetForLeaderEpoch(patience(), asked))[a.topic][0]
	scenarios.Must(found.Err)
	scenarios.Require(found.EndOffset == 20, "20 as the end of the epoch, not %d", found.EndOffset)
}

func (a *adminCalls) deleteRecords() {
	before := kadm.Offsets{}
	before.AddOffset(a.topic, 0, 5, -1)
	scenarios.Must(scenarios.Got(a.admin.DeleteRecords(patience(), before)).Error())
	found, _ := scenarios.Got(a.admin.ListStartOffsets(patience(), a.topic)).Lookup(a.topic, 0)
	scenarios.Require(found.Offset == 5, "5 as the first offset, not %d", found.Offset)
}

func (a *adminCalls) describeAllLogDirs() {
	for _, folders := range scenarios.Got(a.admin.DescribeAllLogDirs(patience(), a.partition)) {
		scenarios.Must(folders.Error())
		found, _ := folders.LookupPartition(a.topic, 0)
		scenarios.Require(found.Size > 0, "the size of the log, not %d", found.Size)
	}
}

func (a *adminCalls) describeQuorum() {
	request := kmsg.NewPtrDescribeQuorumRequest()
	partition := kmsg.NewDescribeQuorumRequestTopicPartition()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	found := scenarios.Got(request.RequestWith(patience(), a.kafka))
	scenarios.Must(kerr.ErrorForCode(found.ErrorCode))
	scenarios.Require(len(found.Topics[0].Partitions[0].CurrentVoters) == 1, "one voter")
}

func (a *adminCalls) describeProducers() {
	found := scenarios.Got(a.admin.DescribeProducers(patience(), a.partition))
	found.EachPartition(func(each kadm.DescribedProducersPartition) { scenarios.Must(each.Err) })
	scenarios.Require(len(found.SortedProducers()) > 0, "the producers of the partition")
}

// describeACLs is content with what Kafka answers without an authorizer.
func (a *adminCalls) describeACLs() {
	all := kadm.NewACLs().AnyResource().Allow().AllowHosts().Deny().DenyHosts().Operations()
	found, err := a.admin.DescribeACLs(patience(), all)
	scenarios.Must(err)
	for _, each := range found {
		scenarios.Require(errors.Is(each.Err, kerr.SecurityDisabled), "SECURITY_DISABLED, not %v", each.Err)
	}
}

func (a *adminCalls) deleteTopicById() {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.TopicID = scenarios.Got(a.admin.ListTopics(patience(), a.other))[a.other].ID
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.Topics = append(request.Topics, topic)
	deleted := scenarios.Got(request.RequestWith(patience(), a.kafka))
	scenarios.Must(kerr.ErrorForCode(deleted.Topics[0].ErrorCode))
	again := scenarios.Got(request.RequestWith(patience(), a.kafka))
	scenarios.Require(again.Topics[0].ErrorCode == kerr.UnknownTopicID.Code, "a deleted topic")
}
