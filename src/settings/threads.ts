import { availableParallelism } from 'node:os'
import { limits } from '../base/limits/limits.js'
import { integer, oneOf } from './parsers.js'
import { setting } from './setting.js'

/** Shards of a data directory. */
export const shardsMax = 16

/**
 * The settings of shards and their threads (docs/OPERATIONS.md, The process; docs/adr/0025-hung-threads.md).
 */
export const shardSettings = {
  shards: setting<number | undefined>({
    name: 'SERVICE_SHARDS',
    default: undefined,
    defaultText: 'the number of the data directory; for a new one, the number of cores, at most 16',
    unit: 'worker threads',
    description: 'Shards of the data, with one thread each. Fixed when the data directory is created.',
    allowed: `an integer from 1 to ${shardsMax}`,
    parse: integer(1, shardsMax),
  }),
  shardSilenceSecs: setting({
    name: 'SERVICE_SHARD_SILENCE_SECS',
    default: 30,
    unit: 'seconds',
    description:
      'How long a shard thread with pending commands may make no progress before the watchdog restarts the thread, or ends ' +
      'the process if that does not help; 0 disables the watchdog.',
    allowed: 'an integer from 0 to 86400',
    parse: integer(0, 86_400),
  }),
} as const

/** The HTTP libraries (src/front/engine). */
const httpEngineChoices = ['auto', 'uws', 'node'] as const
type HttpEngineChoice = (typeof httpEngineChoices)[number]

/**
 * The settings of the threads that accept requests (docs/OPERATIONS.md, The process;
 * docs/adr/0045-fronts.md).
 */
export const frontSettings = {
  httpEngine: setting<HttpEngineChoice>({
    name: 'SERVICE_HTTP_ENGINE',
    default: 'auto',
    description:
      'The HTTP library: `uws` is uWebSockets.js, `node` is the slower one of Node.js, `auto` is the first of them that ' +
      'loads and keeps all bytes of headers (docs/NETWORK.md, HTTP libraries).',
    allowed: httpEngineChoices.join(', '),
    parse: oneOf(httpEngineChoices),
  }),
  fronts: setting<number | undefined>({
    name: 'SERVICE_FRONTS',
    default: undefined,
    defaultText: 'one for every four cores, at least one',
    unit: 'threads',
    description:
      'Threads that accept requests, all on one port. More than one helps if the shards leave cores idle.',
    allowed: `an integer from 1 to ${limits.frontsMax}`,
    parse: integer(1, limits.frontsMax),
  }),
} as const

/** The default number of front threads. */
export function defaultFronts(cores: number = availableParallelism()): number {
  return Math.min(limits.frontsMax, Math.max(1, Math.floor(cores / 4)))
}
