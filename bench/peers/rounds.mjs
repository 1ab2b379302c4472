import { median, rounded } from '../statistics.mjs'

/**
 * The result of one turn of a contender.
 * @typedef {object} Turn
 * @property {number} value of the workload's unit
 * @property {number} [p50Ms] of one request; absent when requests are not awaited one by one
 * @property {number} [p99Ms]
 */

/**
 * A contender for a workload.
 * @typedef {object} Contender
 * @property {string} name
 * @property {'ours' | 'same' | 'peer' | 'ceiling'} role `same`: makes the same promise; `peer`: promises less
 * @property {string} note how it is loaded, what it does and what it does not do
 * @property {(seconds: number) => Promise<Turn>} measure throws when an answer was wrong or an acknowledged
 *   record is not stored
 */

/**
 * Measures all contenders one after another, round by round, so that all run at the same speed of the
 * machine. Every other round runs in reverse, so that no contender always follows the same one. The others
 * are compared with the first contender. A contender that fails is skipped from then on.
 * @param {{plan: import('./options.mjs').PeersPlan, report: (text: string) => void}} bench
 * @param {{contenders: Contender[], secondsMin?: number}} workload
 * @returns {Promise<{results: object[], faults: {name: string, detail: string}[]}>} a ratio is the median of
 *   the rounds' ratios to the first contender
 */
export async function measureInRounds({ plan, report }, { contenders, secondsMin = 0 }) {
  const turns = new Map(contenders.map((contender) => [contender, []]))
  const faults = []
  const takeTurn = async (contender, seconds) => {
    try {
      return await contender.measure(seconds)
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      faults.push({ name: contender.name, detail })
      turns.delete(contender)
      report(`  ${contender.name} FAILED: ${detail}`)
      return undefined
    }
  }
  for (const contender of contenders) await takeTurn(contender, Math.max(plan.warmUpSeconds, secondsMin))
  for (let round = 1; round <= plan.rounds; round++) {
    const left = [...turns.keys()]
    for (const contender of round % 2 === 1 ? left : left.toReversed()) {
      const turn = await takeTurn(contender, Math.max(plan.seconds, secondsMin))
      if (turn === undefined) continue
      turns.get(contender).push(turn)
      report(`  round ${round}: ${String(rounded(turn.value)).padStart(8)}/s  ${contender.name}`)
    }
  }
  const basis = turns.get(contenders[0])
  return { results: [...turns].map(([contender, own]) => resultOf(contender, { own, basis })), faults }
}

/**
 * Compares pairs of contenders with their targets, where both were measured. A ratio is the median of the
 * rounds' ratios.
 * @param {import('./workloads.mjs').Target[]} targets
 * @param {{name: string, rounds: number[]}[]} results of one workload
 * @returns {{ours: string, peer: string, ratio: number, target: number, met: boolean}[]}
 */
export function compareWithTargets(targets, results) {
  return targets.flatMap(({ ours, peer, ratio: target }) => {
    const [own, other] = [ours, peer].map((name) => results.find((result) => result.name === name)?.rounds)
    if (own === undefined || other === undefined) return []
    const ratio = median(own.map((value, round) => value / other[round]))
    return [{ ours, peer, ratio: rounded(ratio), target, met: ratio >= target }]
  })
}

function resultOf({ name, role, note }, { own, basis }) {
  const middle = (key) => (own[0]?.[key] === undefined ? null : rounded(median(own.map((turn) => turn[key]))))
  const ratio =
    basis === undefined ? null : rounded(median(own.map(({ value }, round) => value / basis[round].value)))
  return {
    name,
    role,
    note,
    value: rounded(median(own.map(({ value }) => value))),
    ratio,
    p50_ms: middle('p50Ms'),
    p99_ms: middle('p99Ms'),
    rounds: own.map(({ value }) => rounded(value)),
  }
}
