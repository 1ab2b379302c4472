/** How scripts of the console are read, by the build and by tests that run parts of them in a browser. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keptCalls } from './kept-calls.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The server's own rules run in browsers as they are, but for what they call of Node. */
const buffer = join(root, 'src/console/agents/rules/buffer.ts')

/** @type {import('rolldown').InputOptions} */
export const consoleInput = {
  cwd: root,
  platform: 'browser',
  preserveEntrySignatures: false,
  tsconfig: join(root, 'tsconfig.console.json'),
  resolve: { extensionAlias: { '.js': ['.js', '.ts', '.tsx'] }, alias: { 'node:buffer': buffer } },
  plugins: [{ name: 'lines alone', transform: { filter: { id: /\/uplot\// }, handler: linesAlone } }],
  transform: { inject: { Buffer: [buffer, 'Buffer'] }, define: keptCalls },
  onLog(_level, log) {
    throw new Error(log.message)
  },
}

/** The plots of the page are lines: what draws bars, steps and curves, which uPlot brings along, stays out. */
function linesAlone(code) {
  const others = /^\s*\(paths\.(stepped|bars|spline) *= \w+\);$/gm
  if (code.match(others)?.length !== 3) throw new Error('uPlot names its ways to draw otherwise than it did')
  return code.replaceAll(others, '')
}
