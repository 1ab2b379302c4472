import * as parsers from './parsers.js'
import { setting } from './setting.js'

/** The settings of connections and rate limits (docs/OPERATIONS.md, Connections and Rate limits). */
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
    parse: parsers.integer(1, 1_000_000),
  }),
  rateLimitRps: setting({
    name: 'SERVICE_RATE_LIMIT_RPS',
    default: 100,
    unit: 'requests per second',
    description: 'Requests per client address, on all routes, before the credential is looked at; 0 is off.',
    allowed: 'an integer from 0 to 1000000',
    parse: parsers.integer(0, 1_000_000),
  }),
  rateLimitBurst: setting({
    name: 'SERVICE_RATE_LIMIT_BURST',
    default: 200,
    unit: 'requests',
    description: 'Capacity of the bucket of one client address; 0 switches the limit off.',
    allowed: 'an integer from 0 to 1000000',
    parse: parsers.integer(0, 1_000_000),
  }),
  rateLimitExempt: setting<readonly string[]>({
    name: 'SERVICE_RATE_LIMIT_EXEMPT',
    default: [],
    description:
      'Address ranges of clients that this limit does not count: pipelines and probes of your own. Auth routes go on ' +
      'counting them. Never name a proxy here.',
    allowed: 'address ranges as 10.0.0.0/8 or fd00::/8, separated by commas',
    parse: parsers.list(parsers.isCidr),
  }),
  trustedProxies: setting<readonly string[]>({
    name: 'SERVICE_TRUSTED_PROXIES',
    default: [],
    description: 'Address ranges of proxies. Only from them is X-Forwarded-For read.',
    allowed: 'address ranges as 10.0.0.0/8 or fd00::/8, separated by commas',
    parse: parsers.list(parsers.isCidr),
  }),
  webhookOrigins: setting<readonly string[]>({
    name: 'SERVICE_WEBHOOK_ORIGINS',
    default: [],
    description:
      'Senders of CloudEvents that may deliver to the ingest routes, such as `eventgrid.azure.net`: their request for ' +
      'permission (OPTIONS with `WebHook-Request-Origin`) is granted. They need a credential all the same.',
    allowed: 'host names as eventgrid.azure.net, separated by commas, or * for any',
    parse: parsers.list(parsers.isWebhookOrigin),
  }),
} as const

/** Settings of the web page at /console. */
export const consoleSettings = {
  console: setting({
    name: 'SERVICE_CONSOLE',
    default: true,
    description: 'Whether the console is served, the web page at `/console`; `/` leads there.',
    allowed: 'true or false',
    parse: parsers.boolean,
  }),
} as const
