import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { measuredCheckout } from './product.mjs'

/**
 * The machine and the build that were measured, for a line of results.
 * @param {{cores: number, generator: string, quick: boolean}} plan
 * @returns {{commit: string | null, node: string, cpu: string, cores: number, generator: string, quick:
 * boolean}}
 */
export function environment({ cores, generator, quick }) {
  return { commit: commit(), node: process.version, cpu: cpus()[0]?.model ?? '', cores, generator, quick }
}

/** The commit that is measured, with + when files differ from it; null outside a repository. */
function commit() {
  const git = (...args) =>
    execFileSync('git', args, {
      cwd: measuredCheckout(),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+')
  } catch {
    return null
  }
}
