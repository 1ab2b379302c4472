import { expect, it } from 'vitest'
import { codeBelow, linesMatching } from './tree.js'

/*
 * V8 allocates a function literal that is assigned to a property among its old objects. It is freed by full
 * collections only, and until then keeps alive what it refers to: for a request, everything that belongs to
 * it. With one such closure a request, a sixth of all that the front allocated survived, and a collection took
 * 5 ms in place of 1 to 2. A literal that is a constant first, or that a call returns, is not affected.
 */

/** The assignment of an arrow function or a function to a property. */
const assignment =
  /^\s*[\w.#!?[\]]*[.\]]#?\w* (?:\?\?|\|\|)?= (?:async )?(?:function\b|\w+ =>|\([^=]*\)(?:: [^=]+)? =>)/

it.each([
  'exchange.onLarge = () => {',
  'this.#onRelease = () => {}',
  'request.push = (part: Uint8Array | null) => {',
  'this.#abandon ??= async (how, cause) => {',
  'one.receive = function (part) {',
  'handlers[name] = part => part.length',
])('recognises %s', (line) => expect(assignment.test(line)).toBe(true))

it.each([
  'const push = () => {',
  'exchange.onLarge = holder(exchange, () => {})',
  'a.b = c.map((d) => d + 1)',
])('allows %s', (line) => expect(assignment.test(line)).toBe(false))

it('assigns no function literal to a property where requests are served', () => {
  expect(linesMatching(codeBelow('src/front', 'src/dispatch', 'workers'), assignment)).toEqual([])
})
