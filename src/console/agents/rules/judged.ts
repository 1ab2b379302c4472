import { useEffect, useState } from 'preact/hooks'
import type { Policy } from '../../../auth/row-policy.js'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { explain } from '../../parts/explain.js'
import { useTask } from '../../parts/load.js'
import { readRows, type RecordRow } from '../../parts/records/record-row.js'
import { type AccessRequest, Judge, judgeAll, type Judgement } from './judge.js'

const RECORDS = 200
const PART_RECORDS = 50

/** Reads the last records of an agent on demand, newest first. */
export function useLastRecords(service: ServiceClient, status: AgentStatusResponse) {
  const { agent_id: agent } = status
  const [rows, setRows] = useState<RecordRow[] | undefined>(undefined)
  const [progress, setProgress] = useState<{ done: number; of: number } | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const { begin, stop } = useTask()
  const read = async (): Promise<void> => {
    const signal = begin()
    setProblem(undefined)
    try {
      const found: RecordRow[] = []
      const { record_count: headSeq } = await service.agent(agent).status({ signal })
      const of = Math.min(RECORDS, headSeq + 1)
      while (found.length < of) {
        setProgress({ done: found.length, of })
        const toSeq = headSeq - found.length
        const fromSeq = Math.max(headSeq - of + 1, toSeq - PART_RECORDS + 1)
        found.push(...(await readRows(service, agent, { fromSeq, toSeq, signal })))
      }
      setRows(found)
    } catch (error) {
      if (!signal.aborted) setProblem(explain(error))
    }
    setProgress(undefined)
  }
  return { rows, progress, problem, read, cancel: stop }
}

export interface Judged {
  row: RecordRow
  saved: Judgement | undefined
  edited: Judgement | undefined
}

interface ToJudge {
  rows: RecordRow[] | undefined
  saved: Policy[]
  edited: Policy[] | undefined
  request: AccessRequest | undefined
}

type JudgingState =
  | { kind: 'none' }
  | { kind: 'judging'; done: number }
  | { kind: 'judged'; judged: Judged[] }
  | { kind: 'failed'; problem: string }

/** Evaluates the rules for all records whenever rules, claims or action change. */
export function useJudged({ rows, saved, edited, request }: ToJudge) {
  const [state, setState] = useState<JudgingState>({ kind: 'none' })
  const [attempt, setAttempt] = useState(0)
  const { begin, stop } = useTask()
  const key = JSON.stringify([saved, edited, request])
  useEffect(() => {
    if (rows === undefined || request === undefined) return setState({ kind: 'none' })
    const signal = begin()
    const judges = [saved, edited].map((rules) => rules && new Judge(rules, request))
    const onProgress = (done: number): void => setState({ kind: 'judging', done })
    judgeAll(judges, rows, { signal, onProgress }).then(
      (all) => setState({ kind: 'judged', judged: rows.map((row, at) => judgedOf(row, all[at])) }),
      (error: unknown) => {
        if (!signal.aborted) setState({ kind: 'failed', problem: explain(error) })
      },
    )
    return stop
  }, [rows, key, attempt])
  return {
    done: state.kind === 'judging' ? state.done : undefined,
    judged: state.kind === 'judged' ? state.judged : undefined,
    problem: state.kind === 'failed' ? state.problem : undefined,
    again: () => setAttempt(attempt + 1),
    cancel: () => {
      if (state.kind !== 'judging') return
      stop()
      setState({ kind: 'failed', problem: 'Stopped before all records were evaluated' })
    },
  }
}

function judgedOf(row: RecordRow, [saved, edited]: readonly (Judgement | undefined)[] = []): Judged {
  return { row, saved, edited }
}
