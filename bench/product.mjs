import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout whose build is measured: this one, unless the arguments name another. */
let checkout = fileURLToPath(new URL('..', import.meta.url))

/**
 * Has the build of another checkout measured from now on, so that two versions can be compared in one sitting. Load,
 * ceilings and the placement of agents stay those of this checkout.
 * @param {string} directory of a checkout that was built
 * @throws {Error} when there is no build in it
 */
export function measureCheckout(directory) {
  const asked = resolve(directory)
  if (!existsSync(programOf(asked))) throw new Error(`Expected --product to be built: no ${programOf(asked)}`)
  checkout = asked
}

/** Where the checkout is whose build is measured. */
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
