// kafkajs's admin calls.

import kafkajs from 'kafkajs'

import { newName } from './client.js'
import { require } from './outcomes.js'

const {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  ConfigResourceTypes,
  ResourcePatternTypes,
} = kafkajs

/** In the order to be made; the topic has one partition with records, the group a committed offset and no members. */
export function adminCalls(client, topic, group) {
  const { admin } = client
  const other = newName('made')

  async function config(type, name, key) {
    const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name }] })
    const entry = resources[0].configEntries.find((each) => each.configName === key)
    require(entry !== undefined, key)
    return entry.configValue
  }

  return {
    createTopics: () => client.createTopic(other, 1),
    listTopics: async () => require((await admin.listTopics()).includes(other), 'the topic among those listed'),
    createPartitions: async () => {
      await admin.createPartitions({ topicPartitions: [{ topic: other, count: 3 }] })
      const { topics } = await admin.fetchTopicMetadata({ topics: [other] })
      require(topics[0].partitions.length === 3, 'three partitions')
    },
    fetchTopicMetadata: () => admin.fetchTopicMetadata({ topics: [topic] }),
    fetchTopicOffsets: async () => require((await client.offsets(topic)).high === 20, '20 as the end'),
    describeConfigs: () => config(ConfigResourceTypes.TOPIC, topic, 'cleanup.policy'),
    'describeConfigs of a broker': async () => {
      const { brokers } = await admin.describeCluster()
      await config(ConfigResourceTypes.BROKER, String(brokers[0].nodeId), 'log.retention.ms')
    },
    alterConfigs: async () => {
      const configEntries = [{ name: 'retention.ms', value: '8000000' }]
      await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] })
      const value = await config(ConfigResourceTypes.TOPIC, topic, 'retention.ms')
      require(value === '8000000', 'the altered value')
    },
    listGroups: async () => {
      const { groups } = await admin.listGroups()
      require(groups.some((each) => each.groupId === group), 'the group among those listed')
    },
    describeGroups: async () => {
      const { groups } = await admin.describeGroups([group])
      require(groups[0].state === 'Empty', `state Empty, not ${groups[0].state}`)
    },
    fetchOffsets: async () => require((await client.committed(group, topic)) === 20, '20 as the committed offset'),
    setOffsets: async () => {
      await admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: '7' }] })
      require((await client.committed(group, topic)) === 7, 'the offset that was set')
    },
    deleteGroups: () => admin.deleteGroups([group]),
    deleteTopicRecords: async () => {
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '5' }] })
      require((await client.offsets(topic)).low === 5, '5 as the first offset')
    },
    listPartitionReassignments: () => admin.listPartitionReassignments({ topics: [{ topic, partitions: [0] }] }),
    describeAcls: async () => {
      const anything = {
        resourceType: AclResourceTypes.ANY,
        resourcePatternType: ResourcePatternTypes.ANY,
        operation: AclOperationTypes.ANY,
        permissionType: AclPermissionTypes.ANY,
      }
      const error = await admin.describeAcls(anything).then(() => undefined, (failure) => failure)
      // what Kafka answers without an authorizer
      require(error === undefined || error.type === 'SECURITY_DISABLED', `SECURITY_DISABLED, not ${error}`)
    },
    deleteTopics: async () => {
      await admin.deleteTopics({ topics: [other, topic] })
      require(!(await admin.listTopics()).includes(topic), 'a deleted topic')
    },
  }
}
