import { median, rounded } from '../statistics.mjs'

/**
 * The result of one turn of a contender.
 * @typedef {object} Turn
 * @property {number} value of the workload's unit
 * @property {number} [p50Ms] of one request; absent where none are waited for one by one
 * @property {number} [p99Ms]
 */

/**
 * A contender for a workload.
 * @typedef {object} Contender
 * @property {string} name
 * @property {'ours' | 'peer' | 'ceiling'} role
 * @property {string} note how it is asked and what it does, and what it does not do
 * @property {(seconds: number) => Promise<Turn>} measure throws when an answer was wrong or an answered record is not
 * stored
 */

/**
 * Measures all contenders in turn, round by round, so that all meet the machine at the same speed; every other round
 * runs backwards, so that none always follows the same one. The first contender is what the others are compared with;
 * a contender that fails is left out from then on.
 * @param {{plan: import('./options.mjs').PeersPlan, tell: (text: string) => void}} bench
 * @param {{contenders: Contender[], secondsMin?: number}} workload
 * @returns {Promise<{results: object[], faults: {name: string, detail: string}[]}>} a ratio is the median of the
 *   rounds' ratios to the first contender
 */
export async function measureInRounds({ plan, tell }, { contenders, secondsMin = 0 }) {
  const turns = new Map(contenders.map((contender) => [contender, []]))
  const faults = []
  const takeTurn = async (contender, seconds) => {
    try {
      return await contender.measure(seconds)
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      faults.push({ name: contender.name, detail })
      turns.delete(contender)
      tell(`  ${contender.name} FAILED: ${detail}`)
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
      tell(`  round ${round}: ${String(rounded(turn.value)).padStart(8)}/s  ${contender.name}`)
    }
  }
  const basis = turns.get(contenders[0])
  return { results: [...turns].map(([contender, own]) => resultOf(contender, { own, basis })), faults }
}

/**
 * The results of targets whose two contenders were both measured: the median of the rounds' ratios.
 * @param {import('./workloads.mjs').Target[]} targets
 * @param {{name: string, rounds: number[]}[]} results of one workload
 * @returns {{ours: string, peer: string, ratio: number, target: number, met: boolean}[]}
 */
export function heldAgainst(targets, results) {
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
