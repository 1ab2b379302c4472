import { useEffect, useState } from 'preact/hooks'
import type { Policy } from '../../../auth/row-policy.js'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { explain } from '../../parts/explain.js'
import { useTask } from '../../parts/load.js'
import { readRows, type RecordRow } from '../../parts/records/record-row.js'
import { type Asked, Judge, judgeAll, type Judgement } from './judge.js'

const RECORDS = 200
const PART_RECORDS = 50

/** The last records of an agent, newest first, read when they are asked for. */
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

/** A record, and what the saved and the edited rules say of it. */
export interface Judged {
  row: RecordRow
  saved: Judgement | undefined
  edited: Judgement | undefined
}

interface ToJudge {
  rows: RecordRow[] | undefined
  saved: Policy[]
  edited: Policy[] | undefined
  asked: Asked | undefined
}

type JudgingState =
  | { kind: 'none' }
  | { kind: 'judging'; done: number }
  | { kind: 'judged'; judged: Judged[] }
  | { kind: 'failed'; problem: string }

/** Judges records anew whenever rules, claims or action change. */
export function useJudged({ rows, saved, edited, asked }: ToJudge) {
  const [state, setState] = useState<JudgingState>({ kind: 'none' })
  const [turn, setTurn] = useState(0)
  const { begin, stop } = useTask()
  const key = JSON.stringify([saved, edited, asked])
  useEffect(() => {
    if (rows === undefined || asked === undefined) return setState({ kind: 'none' })
    const signal = begin()
    const judges = [saved, edited].map((rules) => rules && new Judge(rules, asked))
    const onProgress = (done: number): void => setState({ kind: 'judging', done })
    judgeAll(judges, rows, { signal, onProgress }).then(
      (all) => setState({ kind: 'judged', judged: rows.map((row, at) => judgedOf(row, all[at])) }),
      (error: unknown) => {
        if (!signal.aborted) setState({ kind: 'failed', problem: explain(error) })
      },
    )
    return stop
  }, [rows, key, turn])
  return {
    done: state.kind === 'judging' ? state.done : undefined,
    judged: state.kind === 'judged' ? state.judged : undefined,
    problem: state.kind === 'failed' ? state.problem : undefined,
    again: () => setTurn(turn + 1),
    cancel: () => {
      if (state.kind !== 'judging') return
      stop()
      setState({ kind: 'failed', problem: 'Stopped before all records were judged' })
    },
  }
}

function judgedOf(row: RecordRow, [saved, edited]: readonly (Judgement | undefined)[] = []): Judged {
  return { row, saved, edited }
}
