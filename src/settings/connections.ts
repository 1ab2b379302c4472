import * as parsers from './parsers.js'
import { setting } from './setting.js'

/** The settings of connections and rate limits (docs/NETWORK.md). */
export const connectionSettings = {
  connectionsMax: setting<number | undefined>({
    name: 'SERVICE_CONNECTIONS_MAX',
    default: undefined,
    defaultText: 'as many as the limit of open files allows, minus those for stores and threads',
    unit: 'connections',
    description:
      'Concurrent connections of clients; further ones are closed. The limit of open files applies too, so that connections ' +
      'cannot use up the files that stores need.',
    allowed: 'an integer from 1 to 1000000',
    parse: parsers.integer(1, 1_000_000),
  }),
  rateLimitRps: setting({
    name: 'SERVICE_RATE_LIMIT_RPS',
    default: 100,
    unit: 'requests per second',
    description:
      'Requests per client address on all routes, counted before authentication; 0 disables the limit.',
    allowed: 'an integer from 0 to 1000000',
    parse: parsers.integer(0, 1_000_000),
  }),
  rateLimitBurst: setting({
    name: 'SERVICE_RATE_LIMIT_BURST',
    default: 200,
    unit: 'requests',
    description: 'Burst of one client address; 0 disables the limit.',
    allowed: 'an integer from 0 to 1000000',
    parse: parsers.integer(0, 1_000_000),
  }),
  rateLimitExempt: setting<readonly string[]>({
    name: 'SERVICE_RATE_LIMIT_EXEMPT',
    default: [],
    description:
      'Address ranges of clients without this limit, such as your pipelines and probes. The limit of auth routes still ' +
      'applies. Never list a proxy here.',
    allowed: 'address ranges such as 10.0.0.0/8 or fd00::/8, separated by commas',
    parse: parsers.list(parsers.isCidr),
  }),
  trustedProxies: setting<readonly string[]>({
    name: 'SERVICE_TRUSTED_PROXIES',
    default: [],
    description: 'Address ranges of proxies. X-Forwarded-For is only read from them.',
    allowed: 'address ranges such as 10.0.0.0/8 or fd00::/8, separated by commas',
    parse: parsers.list(parsers.isCidr),
  }),
  webhookOrigins: setting<readonly string[]>({
    name: 'SERVICE_WEBHOOK_ORIGINS',
    default: [],
    description:
      'Senders of CloudEvents that may deliver to the ingest routes, such as `eventgrid.azure.net`: the server grants their ' +
      'request for permission (OPTIONS with `WebHook-Request-Origin`). They still need a credential.',
    allowed: 'host names such as eventgrid.azure.net, separated by commas, or * for any',
    parse: parsers.list(parsers.isWebhookOrigin),
  }),
} as const

export const consoleSettings = {
  console: setting({
    name: 'SERVICE_CONSOLE',
    default: true,
    description: 'Whether the console is served at `/console`; `/` redirects to it.',
    allowed: 'true or false',
    parse: parsers.boolean,
  }),
} as const
