import { availableParallelism } from 'node:os'
import { limits } from '../base/limits/limits.js'
import { integer, oneOf } from './parsers.js'
import { setting } from './setting.js'

/** The HTTP libraries that can be asked for (src/front/door). */
const httpEngineChoices = ['auto', 'uws', 'node'] as const
export type HttpEngineChoice = (typeof httpEngineChoices)[number]

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
