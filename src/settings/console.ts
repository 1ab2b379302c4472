import { boolean } from './parsers.js'
import { setting } from './setting.js'

/** Settings of the web page at /console. */
export const consoleSettings = {
  console: setting({
    name: 'SERVICE_CONSOLE',
    default: true,
    description: 'Whether the console is served, the web page at `/console`; `/` leads there.',
    allowed: 'true or false',
    parse: boolean,
  }),
} as const
