/*
 * Preloaded into a command (`node --import`): whoever opens a file by a callback, as a stream does, gets it late, as on a busy
 * machine.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const LATE_MS = 500
const { open } = fs
fs.open = (...given) => void setTimeout(() => open(...given), LATE_MS)
syncBuiltinESMExports()
