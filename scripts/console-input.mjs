/** Bundler options of console scripts, for the build and for tests that run parts of them in a browser. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keptCalls } from './kept-calls.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The server's rules run unchanged in browsers, except for calls of Node's Buffer. */
const buffer = join(root, 'src/console/agents/rules/buffer.ts')

/** @type {import('rolldown').InputOptions} */
export const consoleInput = {
  cwd: root,
  platform: 'browser',
  preserveEntrySignatures: false,
  tsconfig: join(root, 'tsconfig.console.json'),
  resolve: { extensionAlias: { '.js': ['.js', '.ts', '.tsx'] }, alias: { 'node:buffer': buffer } },
  plugins: [{ name: 'lines only', transform: { filter: { id: /\/uplot\// }, handler: removeOtherPaths } }],
  transform: { inject: { Buffer: [buffer, 'Buffer'] }, define: keptCalls },
  onLog(_level, log) {
    throw new Error(log.message)
  },
}

/** Removes the code of uPlot for bars, steps and curves, because the page only draws lines. */
function removeOtherPaths(code) {
  const others = /^\s*\(paths\.(stepped|bars|spline) *= \w+\);$/gm
  if (code.match(others)?.length !== 3) throw new Error('uPlot has changed the names of its path renderers')
  return code.replaceAll(others, '')
}
