import * as parsers from './parsers.js'
import { setting } from './setting.js'

/** Settings of where the server keeps what it keeps. */
export const directorySettings = {
  dataDir: setting({
    name: 'SERVICE_DATA_DIR',
    default: './data',
    description: 'The directory that keeps everything; made when absent, used by one process at a time.',
    allowed: 'a path on a local disk',
    parse: parsers.path,
  }),
  logDir: setting<string | undefined>({
    name: 'SERVICE_LOG_DIR',
    default: undefined,
    defaultText: 'in the data directory',
    description:
      'A folder for the logs that writes wait for, for example on a faster disk; it serves one data directory.',
    allowed: 'a path on a local disk: an empty folder, or one that holds the logs of this data directory',
    parse: parsers.path,
  }),
} as const

/** The settings of the secrets that a server cannot do without. */
export const secretSettings = {
  masterSeed: setting<Buffer | undefined>({
    name: 'SERVICE_MASTER_SEED',
    default: undefined,
    defaultText: 'made at the first start and kept in the data directory',
    description: 'The seed that every key of the server is derived from.',
    allowed: '64 hex digits, without SERVICE_MASTER_SEED_FILE',
    secret: true,
    parse: parsers.seed,
  }),
  masterSeedFile: setting<Buffer | undefined>({
    name: 'SERVICE_MASTER_SEED_FILE',
    default: undefined,
    description: 'A file that holds the master seed.',
    allowed: 'the path of a file of 64 hex digits or 32 bytes, without SERVICE_MASTER_SEED',
    parse: parsers.seedFile,
  }),
  rootApiKey: setting<string | undefined>({
    name: 'SERVICE_ROOT_API_KEY',
    default: undefined,
    defaultText: 'made at the first start, kept in the data directory and shown once on standard error',
    description: 'The key that may do everything, sent as `Authorization: Bearer …`.',
    allowed: '32 to 512 visible ASCII characters',
    secret: true,
    parse: parsers.matching(/^[\x21-\x7e]{32,512}$/),
  }),
} as const
