import { integer } from './setting-parsers.js'
import { setting } from './setting.js'

/** The settings of connections (docs/OPERATIONS.md, Connections). */
export const connectionSettings = {
  connectionsMax: setting<number | undefined>({
    name: 'SERVICE_CONNECTIONS_MAX',
    default: undefined,
    defaultText: 'as many as the limit of open files allows, less what stores and threads need',
    unit: 'connections',
    description:
      'Connections of clients at once; more are closed as they come. Never more than the limit of open files allows, so ' +
      'that clients cannot take the files that the stores need.',
    allowed: 'an integer from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
} as const
