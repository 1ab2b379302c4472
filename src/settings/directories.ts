import { path } from './parsers.js'
import { setting } from './setting.js'

/** Settings of where the server keeps what it keeps. */
export const directorySettings = {
  dataDir: setting({
    name: 'SERVICE_DATA_DIR',
    default: './data',
    description: 'The directory that keeps everything; made when absent, used by one process at a time.',
    allowed: 'a path on a local disk',
    parse: path,
  }),
  logDir: setting<string | undefined>({
    name: 'SERVICE_LOG_DIR',
    default: undefined,
    defaultText: 'in the data directory',
    description:
      'A folder for the logs that writes wait for, for example on a faster disk; it serves one data directory.',
    allowed: 'a path on a local disk: an empty folder, or one that holds the logs of this data directory',
    parse: path,
  }),
} as const
