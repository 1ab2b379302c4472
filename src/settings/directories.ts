import * as parsers from './parsers.js'
import { setting } from './setting.js'

export const directorySettings = {
  dataDir: setting({
    name: 'SERVICE_DATA_DIR',
    default: './data',
    description: 'The data directory. It is created if it does not exist, and used by one process at a time.',
    allowed: 'a path on a local disk',
    parse: parsers.path,
  }),
  logDir: setting<string | undefined>({
    name: 'SERVICE_LOG_DIR',
    default: undefined,
    defaultText: 'in the data directory',
    description:
      'A directory for the write-ahead logs, for example on a faster disk. Each data directory needs a separate one.',
    allowed: 'a path on a local disk: an empty directory, or one with the logs of this data directory',
    parse: parsers.path,
  }),
} as const

/** The settings of the secrets that every server needs. */
export const secretSettings = {
  masterSeed: setting<Buffer | undefined>({
    name: 'SERVICE_MASTER_SEED',
    default: undefined,
    defaultText: 'generated at the first start and stored in the data directory',
    description: 'The seed from which all keys of the server are derived.',
    allowed: '64 hex digits, without SERVICE_MASTER_SEED_FILE',
    secret: true,
    parse: parsers.seed,
  }),
  masterSeedFile: setting<Buffer | undefined>({
    name: 'SERVICE_MASTER_SEED_FILE',
    default: undefined,
    description: 'A file with the master seed.',
    allowed: 'the path of a file with 64 hex digits or 32 bytes, without SERVICE_MASTER_SEED',
    parse: parsers.seedFile,
  }),
  rootApiKey: setting<string | undefined>({
    name: 'SERVICE_ROOT_API_KEY',
    default: undefined,
    defaultText:
      'generated at the first start, stored in the data directory and shown once on standard error',
    description: 'The API key with all permissions, sent as `Authorization: Bearer …`.',
    allowed: '32 to 512 visible ASCII characters',
    secret: true,
    parse: parsers.matching(/^[\x21-\x7e]{32,512}$/),
  }),
} as const
