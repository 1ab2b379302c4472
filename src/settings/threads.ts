import { availableParallelism } from 'node:os'
import { limits } from '../base/limits/limits.js'
import { integer, oneOf } from './parsers.js'
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

/** The HTTP libraries that can be asked for (src/front/door). */
const httpEngineChoices = ['auto', 'uws', 'node'] as const
type HttpEngineChoice = (typeof httpEngineChoices)[number]

/** The settings of the threads that take requests (docs/OPERATIONS.md, The process; docs/adr/0045-fronts.md). */
export const frontSettings = {
  httpEngine: setting<HttpEngineChoice>({
    name: 'SERVICE_HTTP_ENGINE',
    default: 'auto',
    description:
      'The HTTP library: `uws` is uWebSockets.js, `node` what Node brings along, which is slower, `auto` the first of ' +
      'them that loads.',
    allowed: httpEngineChoices.join(', '),
    parse: oneOf(httpEngineChoices),
  }),
  fronts: setting<number | undefined>({
    name: 'SERVICE_FRONTS',
    default: undefined,
    defaultText: 'one for every four cores, at least one',
    unit: 'threads',
    description:
      'Threads that take requests, all on one port. More than one helps where the shards leave cores to them.',
    allowed: `an integer from 1 to ${limits.frontsMax}`,
    parse: integer(1, limits.frontsMax),
  }),
} as const

/** How many there are where nothing is set. */
export function frontsByDefault(cores: number = availableParallelism()): number {
  return Math.min(limits.frontsMax, Math.max(1, Math.floor(cores / 4)))
}
