/** Whether a key may reach an agent. @param agents its limit: names and `prefix*`; empty means none */
export function reaches(agents: readonly string[], agent: string): boolean {
  if (agents.length === 0) return true
  return agents.some((one) => (one.endsWith('*') ? agent.startsWith(one.slice(0, -1)) : agent === one))
}
