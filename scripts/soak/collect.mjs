/*
 * Preloaded into a server and each of its threads: collects garbage every few seconds, so that a short run
 * can distinguish a leak from uncollected garbage.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const EVERY_MS = 3_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
setInterval(() => collect(), EVERY_MS).unref()
