import { useLayoutEffect, useState } from 'preact/hooks'
import { cursorsType, textType, timeType, useAddress } from '../../parts/address.js'
import { Form, Moment } from '../../parts/field.js'
import { fieldOfMs, isUtc, msOfField } from '../../parts/format.js'
import { Button, Empty, Time } from '../../parts/texts.js'
import type { SignedIn } from '../../parts/session.js'
import { EdgeTable, type EdgeFilter } from './edge-table.js'
import { ReachableTree } from './reachable-tree.js'

/** A field has whole seconds; this extends a typed time to the end of its second. */
const REST_OF_SECOND_MS = 999
const EDGE_TYPE = /^[A-Za-z0-9_.:/-]{1,64}$/

/** The edges of an agent and the agents reachable over them, now or at a point in time. */
export function GraphTab({ session, agent }: { session: SignedIn; agent: string }) {
  const { service, who } = session
  const [filter, setFilter] = useFilter()
  const [revision, setRevision] = useState(0)
  if (who.kind === 'user')
    return (
      <Empty title="Users cannot read edges">
        Sign in with a key that has <code>records:read</code>.
      </Empty>
    )
  const key = `${agent} ${filter.type} ${filter.asOfMs}`
  const shown = { service, agent, filter, revision }
  return (
    <>
      <Filter filter={filter} set={setFilter} refresh={() => setRevision(revision + 1)} />
      <p class="muted">
        {filter.asOfMs === undefined ? 'Current edges. ' : <AsOf ms={filter.asOfMs} />}
        This view is not proved: an edge is proved by the records <code>edge/add</code> and{' '}
        <code>edge/remove</code> of its source agent.
        {who.agents.length > 0 && ' Agents that this key cannot access are omitted.'}
      </p>
      <div class="moments">
        <EdgeTable key={`out ${key}`} {...shown} direction="out" />
        <EdgeTable key={`in ${key}`} {...shown} direction="in" />
      </div>
      <ReachableTree key={key} {...shown} />
    </>
  )
}

/** The filter in the address. Another one starts at the first pages. */
function useFilter(): [EdgeFilter, (filter: EdgeFilter) => void] {
  const [type, setType] = useAddress('type', textType)
  const [asOfMs, setAsOf] = useAddress('at', timeType)
  const [, setOut] = useAddress('out', cursorsType)
  const [, setIn] = useAddress('in', cursorsType)
  const set = (filter: EdgeFilter): void => {
    setOut([])
    setIn([])
    setAsOf(filter.asOfMs)
    setType(filter.type)
  }
  return [{ type, asOfMs }, set]
}

function AsOf({ ms }: { ms: number }) {
  return (
    <>
      As of <Time ms={ms} />, according to the clocks of each agent’s records.{' '}
    </>
  )
}

function Filter(props: { filter: EdgeFilter; set: (filter: EdgeFilter) => void; refresh: () => void }) {
  const { filter, set, refresh } = props
  const [type, setType] = useState('')
  const [at, setAt] = useState('')
  useLayoutEffect(() => {
    setType(filter.type)
    setAt(filter.asOfMs === undefined ? '' : fieldOfMs(filter.asOfMs))
  }, [filter.type, filter.asOfMs, isUtc.value])
  const isWrong = type !== '' && !EDGE_TYPE.test(type)
  return (
    <Form
      class="tools"
      submit={() => {
        const ms = msOfField(at)
        if (!isWrong) set({ type, asOfMs: ms === undefined ? undefined : ms + REST_OF_SECOND_MS })
      }}
    >
      <label class="field">
        Edge type
        <input
          type="search"
          placeholder="All"
          autocomplete="off"
          spellcheck={false}
          value={type}
          onInput={(event) => setType(event.currentTarget.value.trim())}
          aria-invalid={isWrong}
          aria-describedby={isWrong ? 'edge-type-problem' : undefined}
        />
      </label>
      <Moment name="As of" value={at} set={setAt} />
      <Button text="Show" type="submit" />
      {(filter.type !== '' || filter.asOfMs !== undefined) && (
        <Button text="Reset" onClick={() => set({ type: '', asOfMs: undefined })} />
      )}
      <Button text="Refresh" class="quiet" onClick={refresh} />
      {isWrong && (
        <p id="edge-type-problem" class="problem" role="alert">
          Expected 1 to 64 characters of A-Z a-z 0-9 _ . : / -
        </p>
      )}
    </Form>
  )
}
