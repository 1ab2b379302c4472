import type { GraphEdge } from '../../../client/index.js'

export interface Branch {
  edge: GraphEdge
  /** Whether the branches of the target are at another position of the tree. */
  isElsewhere: boolean
  branches: Branch[]
}

/**
 * Arranges edges as a tree from an agent. Only the shortest path to an agent shows its branches; other edges
 * to it are leaves, so that the tree of a cyclic graph is finite.
 */
export function treeOf(start: string, edges: readonly GraphEdge[]): Branch[] {
  const bySource = new Map<string, GraphEdge[]>()
  for (const edge of edges) {
    const own = bySource.get(edge.src)
    if (own === undefined) bySource.set(edge.src, [edge])
    else own.push(edge)
  }
  const visited = new Set([start])
  const root: Branch[] = []
  const next: { agent: string; branches: Branch[] }[] = [{ agent: start, branches: root }]
  for (const { agent, branches } of next) {
    for (const edge of bySource.get(agent) ?? []) {
      const branch: Branch = { edge, isElsewhere: visited.has(edge.dst), branches: [] }
      branches.push(branch)
      if (branch.isElsewhere) continue
      visited.add(edge.dst)
      next.push({ agent: edge.dst, branches: branch.branches })
    }
  }
  return root
}

/** The first `count` branches in reading order. */
export function firstOf(branches: readonly Branch[], count: number): Branch[] {
  let left = count
  const firstIn = (some: readonly Branch[]): Branch[] => {
    const shown: Branch[] = []
    for (const branch of some) {
      if (left === 0) break
      left -= 1
      shown.push({ ...branch, branches: firstIn(branch.branches) })
    }
    return shown
  }
  return firstIn(branches)
}
