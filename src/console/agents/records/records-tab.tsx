import { useState } from 'preact/hooks'
import type { AgentStatusResponse } from '../../../client/index.js'
import { Choice } from '../../parts/field.js'
import { Pages } from '../../parts/pages.js'
import { countText } from '../../parts/format.js'
import { Read, useLoaded } from '../../parts/load.js'
import { Empty } from '../../parts/texts.js'
import { agentLink } from '../../route.js'
import type { SignedIn } from '../../parts/session.js'
import { ColumnPicker, chosenColumns } from './columns.js'
import { ExportDialog } from '../../parts/export-dialog.js'
import { type FilterDraft, noFilter, queryOf } from './filter.js'
import { FilterForm } from './filter-form.js'
import { NewRecordButton } from './new-record-button.js'
import { RecordDrawer } from '../../parts/records/record-drawer.js'
import { readRows, type RecordRow, rowOfQuery } from '../../parts/records/record-row.js'
import { type RecordOrder, RecordTable } from '../../parts/records/record-table.js'

const PAGE_RECORDS = 50

interface RecordsTabProps {
  session: SignedIn
  status: AgentStatusResponse
  /** The record whose drawer is open. */
  seq: number | undefined
  reload: () => void
}

/** The records of an agent, newest first unless the order is turned round. */
export function RecordsTab({ session, status, seq, reload }: RecordsTabProps) {
  const { service } = session
  const { agent_id: agent } = status
  const [filter, setFilter] = useState(noFilter)
  const [isFiltering, setFiltering] = useState(false)
  const [isExporting, setExporting] = useState(false)
  const [order, setOrder] = useState<RecordOrder>('desc')
  const [columns, setColumns] = useState(() => chosenColumns(agent))
  const query = queryOf(filter)
  const isFiltered = query !== undefined && 'query' in query
  const page = usePage({ session, status, filter, order })
  const rows = page.loaded.value?.rows
  const warnings = page.loaded.value?.warnings ?? []
  return (
    <>
      <div class="tools">
        <NewRecordButton session={session} agent={agent} rows={rows ?? []} reload={reload} />
        <button type="button" aria-expanded={isFiltering} onClick={() => setFiltering(!isFiltering)}>
          Filter{isFiltered ? ' (on)' : ''}
        </button>
        <ColumnPicker agent={agent} rows={rows ?? []} columns={columns} set={setColumns} />
        <button type="button" onClick={() => setExporting(true)}>
          Export
        </button>
        <button type="button" class="quiet" onClick={reload}>
          Refresh
        </button>
        {!isFiltered && (
          <GoTo headSeq={status.record_count} go={(to) => (location.hash = agentLink(agent, to))} />
        )}
      </div>
      <OrderChoice order={order} set={setOrder} />
      {isFiltering && <FilterForm applied={filter} apply={setFilter} />}
      {isFiltered && (
        <p class="muted">Filters use the current bodies: deleted and erased records are omitted.</p>
      )}
      {warnings.map((warning) => (
        <p key={warning} class="notice warn">
          {warning}
        </p>
      ))}
      <Read of={page} what="records">
        {({ rows: found }) =>
          found.length === 0 ? (
            <NoRows isFiltered={isFiltered} />
          ) : (
            <RecordTable agent={agent} rows={found} columns={columns} order={order} setOrder={setOrder} />
          )
        }
      </Read>
      <Pages
        hasPrevious={page.hasNewer}
        next={page.loaded.value?.next}
        goBack={page.goNewer}
        goNext={page.goOlder}
      />
      {isExporting && <ExportDialog service={service} status={status} close={() => setExporting(false)} />}
      {seq !== undefined && (
        <RecordDrawer key={seq} service={service} status={status} seq={seq} changed={reload} />
      )}
    </>
  )
}

/** The order as a field, for a narrow page, which does not show the headings. */
function OrderChoice({ order, set }: { order: RecordOrder; set: (order: RecordOrder) => void }) {
  return (
    <div class="sort-choice">
      <Choice
        name="Order"
        value={order}
        options={{ desc: 'Newest first', asc: 'Oldest first' }}
        set={(chosen) => set(chosen === 'asc' ? 'asc' : 'desc')}
      />
    </div>
  )
}

interface LoadedPage {
  rows: RecordRow[]
  next: string | undefined
  warnings: string[]
}

/**
 * One page of the strand, or of the results of a filter. The next page is identified by a seq or a cursor.
 */
function usePage({
  session,
  status,
  filter,
  order,
}: Pick<RecordsTabProps, 'session' | 'status'> & { filter: FilterDraft; order: RecordOrder }) {
  const { service } = session
  const { agent_id: agent, record_count: headSeq } = status
  const query = queryOf(filter)
  const key = `${agent} ${order} ${JSON.stringify(query ?? headSeq)}`
  const [history, setHistory] = useState<{ key: string; positions: string[] }>({ key, positions: [] })
  const before = history.key === key ? history.positions : []
  const position = before.at(-1)
  const { loaded, reload } = useLoaded<LoadedPage>(`${key} ${position ?? ''}`, async (signal) => {
    if (query !== undefined && 'query' in query) {
      const cursor = position === undefined ? {} : { cursor: position }
      const body = { ...query.query, ...cursor, order, limit: PAGE_RECORDS }
      const found = await service.agent<unknown>(agent).query(body, { signal })
      const { records, next_cursor: next, warnings = [] } = found
      return { rows: records.map(rowOfQuery), next: next ?? undefined, warnings }
    }
    const { fromSeq, toSeq, next } = seqsOfPage({ order, headSeq, position })
    const rows = await readRows(service, agent, { fromSeq, toSeq, signal })
    return { rows: order === 'asc' ? rows.reverse() : rows, next, warnings: [] }
  })
  return {
    loaded,
    reload,
    hasNewer: before.length > 0,
    goNewer: () => setHistory({ key, positions: before.slice(0, -1) }),
    goOlder: (next: string) => setHistory({ key, positions: [...before, next] }),
  }
}

/** The records of a page. @param of `position` is the seq at which the page begins; undefined for the first */
function seqsOfPage(of: { order: RecordOrder; headSeq: number; position: string | undefined }) {
  const { order, headSeq, position } = of
  if (order === 'desc') {
    const toSeq = position === undefined ? headSeq : Number(position)
    const fromSeq = Math.max(0, toSeq - PAGE_RECORDS + 1)
    return { fromSeq, toSeq, next: fromSeq === 0 ? undefined : String(fromSeq - 1) }
  }
  const fromSeq = Number(position ?? 0)
  const toSeq = Math.min(headSeq, fromSeq + PAGE_RECORDS - 1)
  return { fromSeq, toSeq, next: toSeq === headSeq ? undefined : String(toSeq + 1) }
}

function NoRows({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No records match">Extend the time range, or remove a condition.</Empty>
  ) : (
    <Empty title="No records yet">Records appear here after they are written.</Empty>
  )
}

function GoTo({ headSeq, go }: { headSeq: number; go: (seq: number) => void }) {
  const [text, setText] = useState('')
  return (
    <form
      class="go-to"
      onSubmit={(event) => {
        event.preventDefault()
        if (text !== '') go(Number(text))
      }}
    >
      <label>
        <span class="hidden">Go to record, 0 to {countText(headSeq)}</span>
        <input
          type="number"
          min={0}
          max={headSeq}
          step={1}
          placeholder={`0 to ${headSeq}`}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Go to record</button>
    </form>
  )
}
