import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout whose build is measured: this one, unless the arguments name another. */
let checkout = fileURLToPath(new URL('..', import.meta.url))

/**
 * Measures the build of another checkout from now on, so that two versions can be compared in one session.
 * Load, ceilings and the placement of agents stay those of this checkout.
 * @param {string} directory of a checkout that was built
 * @throws {Error} when there is no build in it
 */
export function measureCheckout(directory) {
  const other = resolve(directory)
  if (!existsSync(programOf(other))) throw new Error(`Expected --product to be built: no ${programOf(other)}`)
  checkout = other
}

/** The directory of the checkout whose build is measured. */
export function measuredCheckout() {
  return checkout
}

/** The built command line that is measured. */
export function program() {
  return programOf(checkout)
}

function programOf(directory) {
  return join(directory, 'dist/program/strandfast.js')
}
