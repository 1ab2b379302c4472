import type { GraphEdge } from '../../../client/index.js'

/** An edge, and what it leads to. */
export interface Branch {
  edge: GraphEdge
  /** Whether the agent that it leads to is at another place of the tree, with what comes after it. */
  isElsewhere: boolean
  branches: Branch[]
}

/**
 * Edges as a tree from an agent. Each agent has its branches at one place, that of the fewest steps; other edges that lead
 * to it end there, so that a tree of a graph with circles has an end.
 */
export function treeOf(start: string, edges: readonly GraphEdge[]): Branch[] {
  const bySource = new Map<string, GraphEdge[]>()
  for (const edge of edges) {
    const own = bySource.get(edge.src)
    if (own === undefined) bySource.set(edge.src, [edge])
    else own.push(edge)
  }
  const placed = new Set([start])
  const root: Branch[] = []
  const next: { agent: string; branches: Branch[] }[] = [{ agent: start, branches: root }]
  for (const { agent, branches } of next) {
    for (const edge of bySource.get(agent) ?? []) {
      const branch: Branch = { edge, isElsewhere: placed.has(edge.dst), branches: [] }
      branches.push(branch)
      if (branch.isElsewhere) continue
      placed.add(edge.dst)
      next.push({ agent: edge.dst, branches: branch.branches })
    }
  }
  return root
}

/** The first of the branches, as they are read from the top, and no more than `count` in all. */
export function firstOf(branches: readonly Branch[], count: number): Branch[] {
  let left = count
  const taken = (some: readonly Branch[]): Branch[] => {
    const shown: Branch[] = []
    for (const branch of some) {
      if (left === 0) break
      left -= 1
      shown.push({ ...branch, branches: taken(branch.branches) })
    }
    return shown
  }
  return taken(branches)
}
