import { integer } from './parsers.js'
import { setting } from './setting.js'

/** The most shards that a data directory can have. */
export const shardsMax = 16

/** The settings of shards and their threads (docs/OPERATIONS.md, The process; docs/adr/0025-hung-threads.md). */
export const shardSettings = {
  shards: setting<number | undefined>({
    name: 'SERVICE_SHARDS',
    default: undefined,
    defaultText: 'that of the data directory; when that is made, the number of cores, at most 16',
    unit: 'worker threads',
    description: 'Threads that own the shards of the data. Fixed when the data directory is made.',
    allowed: `an integer from 1 to ${shardsMax}`,
    parse: integer(1, shardsMax),
  }),
  shardSilenceSecs: setting({
    name: 'SERVICE_SHARD_SILENCE_SECS',
    default: 30,
    unit: 'seconds',
    description:
      'How long a shard thread with commands to carry out may come no step further before it is taken to hang and is ' +
      'ended, or, where that does not help, the process; 0 is off.',
    allowed: 'an integer from 0 to 86400',
    parse: integer(0, 86_400),
  }),
} as const
