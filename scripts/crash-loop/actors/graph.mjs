import { between, pick } from '../seeded-random.mjs'
import { send } from '../request.mjs'

const AGENTS = 4

/** Adds and removes edges between a few agents, with the expected edges after a crash. */
export class Graph {
  #names
  #created = 0
  /** Weights by `src type dst`. @type {Map<string, number>} */
  #edges = new Map()

  /** @param {string} name */
  constructor(name) {
    this.#names = Array.from({ length: AGENTS }, (_none, index) => `${name}-${index}`)
  }

  /** Checks all edges. @param {string} url */
  async check(url) {
    const faults = []
    for (const name of this.#names.slice(0, this.#created)) {
      for (const [direction, end] of [
        ['out', 0],
        ['in', 2],
      ]) {
        const path = `/v1/graph/edges/${name}?direction=${direction}&limit=1000`
        const { status, body } = await send(url, { method: 'GET', path })
        const actual = (body.edges ?? []).map(
          (edge) => `${edge.src} ${edge.edge_type} ${edge.dst} ${edge.weight}`,
        )
        const expected = [...this.#edges]
          .filter(([edge]) => edge.split(' ')[end] === name)
          .map(([edge, weight]) => `${edge} ${weight}`)
        if (status !== 200 || actual.toSorted().join('\n') !== expected.toSorted().join('\n'))
          faults.push(`Edges ${direction} of ${name} are ${actual.join(', ')}, not ${expected.join(', ')}`)
      }
    }
    return faults
  }

  /** @param {() => number} random */
  draw(random) {
    if (this.#created < AGENTS) return this.#agent(this.#names[this.#created])
    const edges = [...this.#edges.keys()]
    return edges.length > 0 && random() < 0.3 ? this.#remove(pick(random, edges)) : this.#add(random)
  }

  #agent(name) {
    return {
      name: `agent ${name}`,
      request: { method: 'POST', path: '/v1/agents', body: { name, zone: 'free' } },
      expected: 201,
      done: () => void this.#created++,
    }
  }

  #add(random) {
    const [src, dst] = [pick(random, this.#names), pick(random, this.#names)]
    const type = pick(random, ['likes', 'knows'])
    const weight = between(random, 1, 1_000)
    return {
      name: `edge ${src} ${type} ${dst}`,
      request: { method: 'POST', path: '/v1/graph/edges', body: { src, dst, edge_type: type, weight } },
      expected: 201,
      done: () => void this.#edges.set(`${src} ${type} ${dst}`, weight),
    }
  }

  #remove(edge) {
    const [src = '', type = '', dst = ''] = edge.split(' ')
    const query = new URLSearchParams({ src, edge_type: type, dst })
    return {
      name: `removal of edge ${edge}`,
      request: { method: 'DELETE', path: `/v1/graph/edges?${query}` },
      done: () => void this.#edges.delete(edge),
    }
  }
}
