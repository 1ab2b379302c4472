/*
 * Preloaded into a command (`node --import`): opening a file with a callback, as a stream does, takes long,
 * as on a busy machine.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const LATE_MS = 500
const { open } = fs
fs.open = (...given) => void setTimeout(() => open(...given), LATE_MS)
syncBuiltinESMExports()
