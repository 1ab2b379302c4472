import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestServer, TestServerOptions } from './server.js'

/** The compiled program, a file for each source file, so that coverage separates them. */
const compiled = join(import.meta.dirname, '../../../dist')

/** A request that a server can serve many times, after what it needs. */
export interface RepeatedCall {
  start(options: TestServerOptions): Promise<TestServer>
  prepare(server: TestServer): Promise<(round: number) => Promise<void>>
  /** How often it is sent. Files that run for other reasons run less often. */
  times: number
}

/**
 * The files of the program that run for each request, in all threads: those with a function that runs at least
 * once more for most of the requests than without them. Paths are relative to the root, without the extension.
 */
export async function filesRun(call: RepeatedCall): Promise<Set<string>> {
  const idle = await countsAfter(call, 1)
  const used = await countsAfter(call, 1 + call.times)
  const paths = [...used].flatMap(([name, count]) =>
    count - (idle.get(name) ?? 0) > call.times / 2 ? [name.slice(0, name.indexOf('.js '))] : [],
  )
  return new Set(paths)
}

/** How often each function ran in a server that served the request some times. */
async function countsAfter({ start, prepare }: RepeatedCall, times: number): Promise<Map<string, number>> {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-coverage-'))
  const env = { NODE_V8_COVERAGE: directory, SERVICE_SHARDS: '1', SERVICE_FRONTS: '1' }
  const server = await start({ program: join(compiled, 'src/cli/main.js'), env })
  const send = await prepare(server)
  for (let round = 0; round < times; round++) await send(round)
  await server.stop()
  const counts = new Map<string, number>()
  for (const file of readdirSync(directory)) {
    const { result }: Coverage = JSON.parse(readFileSync(join(directory, file), 'utf8'))
    for (const { url, functions } of result) {
      if (!url.startsWith(`file://${compiled}/`)) continue
      for (const { functionName, ranges } of functions) {
        const name = `${url.slice(`file://${compiled}/`.length)} ${functionName} ${ranges[0]?.startOffset ?? 0}`
        counts.set(name, (counts.get(name) ?? 0) + (ranges[0]?.count ?? 0))
      }
    }
  }
  rmSync(directory, { recursive: true })
  return counts
}

/** A file of NODE_V8_COVERAGE, which has the form of `Profiler.takePreciseCoverage`. */
interface Coverage {
  result: {
    url: string
    functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[]
  }[]
}
