// The scenarios with kafkajs: node compat.js BOOTSTRAP FEATURE; features and statuses as in compat/scenarios.py.

import { adminCalls } from './admin_calls.js'
import { Client, newName, until } from './client.js'
import { Missing, NotInClient, require } from './outcomes.js'

const RECORDS = 200
const PHASE_RECORDS = 120
const GROUP_PARTITIONS = 6
/** From subscribing to a group's first record. */
const FIRST_RECORD_MS = 1000
/** Times that a group of 1, 3 and then 2 members may rebalance; each may bring what wasn't committed again. */
const MAX_REBALANCES = 6
/** The records with timestamps start an hour ago, well within any limit. */
const FIRST_TIMESTAMP_MS = Date.now() - 3_600_000

const MISSING = 1
const NOT_IN_CLIENT = 3

function numbered(start, count) {
  return Array.from({ length: count }, (_, i) => `record ${start + i}`)
}

function areEqual(some, others) {
  return some.length === others.length && some.every((each, i) => each === others[i])
}

/** The members of one group, and all that they have read. */
class Party {
  topic = newName('topic')
  group = newName('group')
  members = []
  seen = new Map()
  sent = 0

  constructor(client, partitions) {
    this.client = client
    this.partitions = partitions
  }

  async joins() {
    const count = ({ value }) => this.seen.set(value, (this.seen.get(value) ?? 0) + 1)
    const member = await this.client.member(this.group, this.topic, count)
    this.members.push(member)
    return member
  }

  async leaves(member) {
    this.members.splice(this.members.indexOf(member), 1)
    await member.close()
  }

  /** Each partition has one owner, each member at least one partition. */
  isSharedOut() {
    const owned = this.members.flatMap((each) => each.owned).sort()
    const all = Array.from({ length: this.partitions }, (_, i) => i)
    return areEqual(owned, all) && this.members.every((each) => each.owned.length > 0)
  }

  settles() {
    return until(() => this.isSharedOut(), `each partition with one of ${this.members.length} members`)
  }

  async sends(count) {
    const values = numbered(this.sent, count)
    for (let partition = 0; partition < this.partitions; partition++) {
      const here = values.filter((_, i) => i % this.partitions === partition)
      await this.client.produce(this.topic, partition, here)
    }
    this.sent += count
  }

  async readsAll() {
    await until(() => this.seen.size >= this.sent, `all ${this.sent} records`)
    require(numbered(0, this.sent).every((each) => this.seen.has(each)), 'records that were never sent')
  }

  async ends() {
    while (this.members.length > 0) await this.leaves(this.members.at(-1))
  }

  /** Has the group commit in partition 0, and end. */
  async commits(count) {
    await this.joins()
    await this.sends(count)
    await this.readsAll()
    await this.ends()
  }
}

async function newParty(client, partitions) {
  const party = new Party(client, partitions)
  await client.createTopic(party.topic, partitions)
  return party
}

async function withCodec(client, codec) {
  const topic = newName('codec')
  await client.createTopic(topic, 1)
  await client.produce(topic, 0, numbered(0, RECORDS), codec)
  const values = (await client.read(topic, 0, RECORDS)).map((each) => each.value)
  require(areEqual(values, numbered(0, RECORDS)), 'other records than were sent')
}

const FEATURES = {
  none: (client) => withCodec(client, 'none'),
  gzip: (client) => withCodec(client, 'gzip'),
  snappy: (client) => withCodec(client, 'snappy'),
  lz4: (client) => withCodec(client, 'lz4'),
  zstd: (client) => withCodec(client, 'zstd'),

  async first(client) {
    const party = await newParty(client, 1)
    await party.sends(10)
    await client.read(party.topic, 0, 10)
    const started = Date.now()
    await party.joins()
    await until(() => party.seen.size > 0, 'a record')
    const tookMs = Date.now() - started
    await party.ends()
    require(tookMs < FIRST_RECORD_MS, `the first record within ${FIRST_RECORD_MS} ms, not ${tookMs} ms`)
  },

  async groups(client) {
    const party = await newParty(client, GROUP_PARTITIONS)
    const first = await party.joins()
    await party.sends(PHASE_RECORDS)
    await party.settles()
    await party.readsAll()
    await party.joins()
    await party.joins()
    await party.sends(PHASE_RECORDS)
    await party.settles()
    await party.sends(PHASE_RECORDS)
    await party.readsAll()
    await party.leaves(first)
    await party.sends(PHASE_RECORDS)
    await party.settles()
    await party.readsAll()
    await party.ends()
    const mostOften = Math.max(...party.seen.values())
    require(mostOften <= 1 + MAX_REBALANCES, 'records that came oftener than rebalances explain')
  },

  static() {
    throw new NotInClient('kafkajs has no static members')
  },

  cooperative() {
    throw new NotInClient('kafkajs has no cooperative assignor')
  },

  async restart(client) {
    const party = await newParty(client, 1)
    await party.commits(40)
    await party.sends(40)
    party.seen.clear()
    await party.joins()
    await until(() => party.seen.has('record 79'), 'the records after the committed offset')
    require(areEqual([...party.seen.keys()], numbered(40, 40)), 'just the records after the committed offset')
    await party.ends()
  },

  async seek(client) {
    const topic = newName('seek')
    await client.createTopic(topic, 1)
    await client.produce(topic, 0, numbered(0, RECORDS))
    for (const start of [150, 0, 77]) {
      const records = await client.read(topic, start, 20)
      require(areEqual(records.map((each) => each.value), numbered(start, 20)), `records from ${start}`)
      require(records[0].offset === start && records[19].offset === start + 19, `offsets from ${start}`)
    }
  },

  async times(client) {
    const topic = newName('times')
    await client.createTopic(topic, 1)
    await client.produce(topic, 0, numbered(0, 20), 'none', FIRST_TIMESTAMP_MS)
    const expected = [[-5000, 0], [0, 0], [1, 1], [7000, 7], [18_001, 19], [19_001, 20]]
    for (const [afterMs, offset] of expected) {
      const found = await client.offsetForTime(topic, FIRST_TIMESTAMP_MS + afterMs)
      require(found === offset, `offset ${offset} for the time ${afterMs} ms after the first, not ${found}`)
    }
  },

  async admin(client) {
    const party = await newParty(client, 1)
    await party.commits(20)
    const calls = adminCalls(client, party.topic, party.group)
    const failed = []
    for (const [name, call] of Object.entries(calls)) {
      await call().catch((error) => failed.push(`${name} (${error.message})`))
    }
    require(failed.length === 0, failed.join('; '))
    console.log(Object.keys(calls).join(', '))
  },

  async lag(client) {
    const party = await newParty(client, 1)
    await party.commits(20)
    await party.sends(15)
    const found = (await client.offsets(party.topic)).high - (await client.committed(party.group, party.topic))
    require(found === 15, `a lag of 15, not ${found}`)
  },
}

/** Run the feature, and give the status. */
async function run(bootstrap, feature) {
  const client = new Client(bootstrap)
  try {
    await client.start()
    await FEATURES[feature](client)
    await client.close()
    return 0
  } catch (error) {
    console.log(error instanceof Missing || error instanceof NotInClient ? error.message : String(error))
    return error instanceof NotInClient ? NOT_IN_CLIENT : MISSING
  }
}

const [bootstrap, feature] = process.argv.slice(2)
if (!FEATURES[feature]) {
  console.error(`usage: node compat.js BOOTSTRAP {${Object.keys(FEATURES).join(',')}}`)
  process.exit(2)
}
process.exit(await run(bootstrap, feature))
