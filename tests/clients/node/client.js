// What the scenarios ask of kafkajs.

import { randomUUID } from 'node:crypto'

import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'

import { NotInClient, require } from './outcomes.js'

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs
CompressionCodecs[CompressionTypes.Snappy] = snappy

/** Bound on everything that is waited for. */
export const PATIENCE_MS = 30_000
const LOOK_MS = 5
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }

/** A name that no other run uses. */
export function newName(prefix) {
  return `${prefix}-${randomUUID()}`
}

/** Wait until the condition holds. */
export async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS
  while (!condition()) {
    require(Date.now() < deadline, `not within ${PATIENCE_MS / 1000} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** A consumer in a group: it hands what it reads to `onRecord`, and then commits it. */
export class Member {
  owned = []

  constructor(consumer, topic, onRecord) {
    this.consumer = consumer
    this.topic = topic
    this.onRecord = onRecord
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      this.owned = payload.memberAssignment[topic] ?? []
    })
    consumer.on(consumer.events.REBALANCING, () => {
      this.owned = []
    })
  }

  async start() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [this.topic], fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachBatch: (each) => this.#read(each) })
  }

  async #read({ batch, resolveOffset, heartbeat }) {
    for (const message of batch.messages) {
      this.onRecord({ offset: Number(message.offset), value: message.value.toString() })
      resolveOffset(message.offset)
    }
    const offset = String(Number(batch.lastOffset()) + 1)
    await this.consumer.commitOffsets([{ topic: this.topic, partition: batch.partition, offset }])
    await heartbeat()
  }

  async close() {
    await this.consumer.disconnect()
  }
}

export class Client {
  constructor(bootstrap) {
    this.kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
    this.admin = this.kafka.admin()
  }

  async start() {
    await this.admin.connect()
  }

  async close() {
    await this.admin.disconnect()
  }

  async createTopic(topic, numPartitions) {
    require(await this.admin.createTopics({ topics: [{ topic, numPartitions }] }), 'a new topic')
  }

  /** Send all with acks=all and wait for the answers; timestamps a second apart, if the first is given. */
  async produce(topic, partition, values, codec = 'none', firstTimestampMs = undefined) {
    if (CODECS[codec] === undefined) throw new NotInClient(`kafkajs has no ${codec}`)
    const producer = this.kafka.producer()
    await producer.connect()
    const messages = values.map((value, i) => ({
      partition,
      value,
      timestamp: firstTimestampMs === undefined ? undefined : String(firstTimestampMs + 1000 * i),
    }))
    await producer.send({ topic, messages, acks: -1, compression: CODECS[codec] })
    await producer.disconnect()
  }

  #consumer(groupId) {
    return this.kafka.consumer({ groupId, sessionTimeout: 10_000, heartbeatInterval: 300, maxWaitTimeInMs: 100 })
  }

  async member(group, topic, onRecord) {
    const member = new Member(this.#consumer(group), topic, onRecord)
    await member.start()
    return member
  }

  /** Seek to `start` in partition 0, when already reading elsewhere, and read. */
  async read(topic, start, count) {
    const consumer = this.#consumer(newName('reader'))
    let hasSought = false
    const records = []
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        if (hasSought) {
          records.push({ offset: Number(message.offset), value: message.value.toString() })
        } else {
          hasSought = true
          consumer.seek({ topic, partition: 0, offset: String(start) })
        }
      },
    })
    await until(() => records.length >= count, `${count} records from ${start}`)
    await consumer.disconnect()
    return records.slice(0, count)
  }

  /** The first offset of partition 0 at or after the time; kafkajs gives the end when there is none. */
  async offsetForTime(topic, timestampMs) {
    const [found] = await this.admin.fetchTopicOffsetsByTimestamp(topic, timestampMs)
    return Number(found.offset)
  }

  async offsets(topic) {
    const [found] = await this.admin.fetchTopicOffsets(topic)
    return { low: Number(found.low), high: Number(found.high) }
  }

  async committed(groupId, topic) {
    const [found] = await this.admin.fetchOffsets({ groupId, topics: [topic] })
    return Number(found.partitions[0].offset)
  }
}
