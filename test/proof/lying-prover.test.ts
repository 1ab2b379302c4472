import { fc } from '../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { seed } from '../support/run-seed.js'
import { kinds, type ShownHistory, shownHistories } from '../support/proof/lying-prover.js'
import { byClient, byCommandLine, byPython, python } from '../support/proof/verifiers.js'

const OF_EACH = 13
const drawn: ShownHistory[] = kinds.flatMap((kind, at) =>
  fc.sample(shownHistories(kind), { seed: seed + at, numRuns: OF_EACH }),
)

describe(`an operator with every key (seed ${seed})`, () => {
  it('is believed if and only if the history is unchanged', async () => {
    const wrong: unknown[] = []
    for (const lie of drawn) {
      for (const fast of [false, true]) {
        const { ok, reason } = await byCommandLine(lie, fast)
        if (ok !== lie.ok) wrong.push([lie.name, lie.log !== undefined, fast, reason])
      }
      // The client has no log to compare with.
      if (lie.log !== undefined) continue
      const { ok, reason } = await byClient(lie)
      if (ok !== lie.ok) wrong.push([lie.name, 'client', reason])
    }
    expect(wrong).toEqual([])
  })

  it.skipIf(python === undefined)('is believed by Python in the same cases', () => {
    const verdicts = byPython(drawn)
    expect(drawn.filter((lie, at) => verdicts[at]?.ok !== lie.ok).map(({ name }) => name)).toEqual([])
  })

  it('shows histories of every kind', () => {
    expect(new Set(drawn.map(({ name }) => name)).size).toBe(16)
    expect(drawn.filter(({ ok }) => ok)).toHaveLength(4 * OF_EACH)
  })
})
