import { useLayoutEffect, useMemo, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { cursorsType, numberType, sameView, useAddress } from '../../parts/address.js'
import { Choice, Form, Problem, TextInput } from '../../parts/field.js'
import { CursorPages } from '../../parts/card-table.js'
import { useRoving } from '../../parts/roving.js'
import { lazy, Read, useChange, useLoaded } from '../../parts/load.js'
import { Button, Empty, ScopedButton } from '../../parts/texts.js'
import { countText, isUtc } from '../../parts/format.js'
import { agentLink, goTo } from '../../route.js'
import { hasScope, type SignedIn } from '../../parts/session.js'
import { chosenColumns, ColumnPicker, storeColumns } from './columns.js'
import { ExportDialog } from '../../parts/export-dialog.js'
import { columnsType, type FilterDraft, queryOf, queryOfView, type RecordsView, viewOf } from './filter.js'
import { FilterForm, Mismatches, NoMatch } from './filter-form.js'
import { RecordDrawer } from '../../parts/records/record-drawer.js'
import {
  findRecords,
  hashDigits,
  readRows,
  type RecordOrder,
  type RecordRow,
  rowOfQuery,
} from '../../parts/records/record-row.js'
import { RecordTable } from '../../parts/records/record-table.js'
import { isReservedType } from '../../../strand/record-type.js'
import type { RecordDraft } from './new-record.js'

const PAGE_RECORDS = 50

interface RecordsTabProps {
  session: SignedIn
  status: AgentStatusResponse
  /** The record whose drawer is open. */
  seq: number | undefined
  /** The part of the address behind `?`: the filter and the columns. */
  address: string
  reload: () => void
}

/** The records of an agent, newest first unless the order is turned round. */
export function RecordsTab({ session, status, seq, address, reload }: RecordsTabProps) {
  const { service } = session
  const { agent_id: agent } = status
  const { filter, columns, order, linkTo, setFilter, setColumns, setOrder } = useView(agent, { address, seq })
  const query = queryOf(filter)
  const isFiltered = query !== undefined
  const [isFiltering, setFiltering] = useState(isFiltered)
  const [isExporting, setExporting] = useState(false)
  const tools = useRoving<HTMLDivElement>()
  const page = usePage({ session, status, filter, order })
  const { value } = page.loaded
  const next = value?.next
  return (
    <>
      <div ref={tools} class="tools" role="toolbar" aria-label={`Records of ${agent}`}>
        <NewRecordButton {...{ session, agent, linkTo, reload }} rows={value?.rows ?? []} />
        <button type="button" aria-expanded={isFiltering} onClick={() => setFiltering(!isFiltering)}>
          Filter{isFiltered ? ' (on)' : ''}
        </button>
        <ColumnPicker rows={value?.rows ?? []} columns={columns} set={setColumns} />
        <Button text="Export" onClick={() => setExporting(true)} />
        <Button text="Refresh" class="quiet" onClick={reload} />
        <GoTo service={service} status={status} go={(to) => (location.hash = linkTo(to))} />
      </div>
      <OrderChoice order={order} set={setOrder} />
      {isFiltering && <FilterForm applied={filter} apply={setFilter} />}
      {isFiltered && (
        <p class="muted">Filters use the current bodies: deleted and erased records are omitted.</p>
      )}
      <Mismatches filter={filter} apply={setFilter} warnings={value?.warnings ?? []} />
      <Read of={page} what="records">
        {({ rows }) =>
          rows.length > 0 ? (
            <RecordTable
              agent={agent}
              rows={rows}
              imported={status.imported_records}
              {...{ columns, linkTo, order, setOrder }}
            />
          ) : isFiltered ? (
            <NoMatch
              filter={filter}
              apply={setFilter}
              order={order}
              searchFurther={next === undefined ? undefined : () => page.set([...page.cursors, next])}
            />
          ) : (
            <Empty title="No records yet">Records appear here after they are written.</Empty>
          )
        }
      </Read>
      <CursorPages cursors={page.cursors} set={page.set} next={next} />
      {isExporting && <ExportDialog service={service} status={status} close={() => setExporting(false)} />}
      {seq !== undefined && (
        <RecordDrawer
          key={seq}
          service={service}
          status={status}
          seq={seq}
          linkTo={linkTo}
          changed={reload}
        />
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

/** The filter and the columns in the address, with the functions that change them there. */
function useView(agent: string, { address, seq }: { address: string; seq: number | undefined }) {
  const view = useMemo(() => viewOf(address), [address, isUtc.value])
  const [columns, setColumns] = useAddress('column', columnsType)
  // Another filter or order begins with its first page.
  const link = (change: Partial<RecordsView>): string =>
    agentLink(agent, seq, queryOfView({ ...view, ...change }))
  useLayoutEffect(() => {
    const chosen = chosenColumns(agent)
    // An address without columns has those that were chosen last in this tab.
    if (columns.length === 0 && chosen.length > 0) setColumns(chosen)
    else storeColumns(agent, columns)
  }, [agent, address])
  return {
    ...view,
    columns,
    linkTo: (to?: number): string => sameView(agentLink(agent, to), to === undefined ? { raw: '' } : {}),
    setFilter: (filter: FilterDraft): void => {
      goTo(link({ filter }), 'push')
    },
    setOrder: (order: RecordOrder): void => {
      goTo(link({ order }), 'push')
    },
    setColumns(next: readonly string[]): void {
      storeColumns(agent, next)
      setColumns(next)
    },
  }
}

interface LoadedPage {
  rows: RecordRow[]
  next: string | undefined
  warnings: string[]
}

/**
 * One page of the strand, or of the results of a filter. The next page is identified by a seq or a cursor.
 */
function usePage(of: Pick<RecordsTabProps, 'session' | 'status'> & Pick<RecordsView, 'filter' | 'order'>) {
  const { status, filter, order } = of
  const { service } = of.session
  const { agent_id: agent, record_count: headSeq } = status
  const query = queryOf(filter)
  const key = `${agent} ${order} ${JSON.stringify(query ?? headSeq)}`
  const [cursors, set] = useAddress('page', cursorsType)
  const position = cursors.at(-1)
  const { loaded, reload } = useLoaded<LoadedPage>(`${key} ${position ?? ''}`, async (signal) => {
    if (query !== undefined && 'fault' in query) throw new Error(`The filter is not valid: ${query.fault}`)
    if (query !== undefined) {
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
  return { loaded, reload, cursors, set }
}

/** The records of a page. @param of `position` is the seq at which the page begins; any other text means the first */
function seqsOfPage(of: { order: RecordOrder; headSeq: number; position: string | undefined }) {
  const { order, headSeq, position = '' } = of
  const seq = numberType.read([position])
  if (order === 'desc') {
    const toSeq = Math.min(seq ?? headSeq, headSeq)
    const fromSeq = Math.max(0, toSeq - PAGE_RECORDS + 1)
    return { fromSeq, toSeq, next: fromSeq === 0 ? undefined : String(fromSeq - 1) }
  }
  const fromSeq = Math.min(seq ?? 0, headSeq)
  const toSeq = Math.min(headSeq, fromSeq + PAGE_RECORDS - 1)
  return { fromSeq, toSeq, next: toSeq === headSeq ? undefined : String(toSeq + 1) }
}

/** Opens a record by its seq, or by its hash or the first digits of it, which can lead to another agent. */
function GoTo(props: { service: ServiceClient; status: AgentStatusResponse; go: (seq: number) => void }) {
  const { service, status, go } = props
  const { agent_id: agent, record_count: headSeq } = status
  const [text, setText] = useState('')
  const { isBusy, problem, run } = useChange()
  const open = async (): Promise<void> => {
    const digits = hashDigits(text)
    const isSeq = /^(0|[1-9][0-9]{0,14})$/.test(text.trim())
    if (isSeq && (digits === undefined || Number(text) <= headSeq)) return go(Number(text))
    if (digits === undefined) throw new Error(expected)
    const found = await findRecords(service, digits, AbortSignal.timeout(READ_MS))
    const own = found.filter((one) => one.agent === agent)
    const [record, another] = own.length > 0 ? own : found
    if (record === undefined) throw new Error(`No record has a hash that begins with ${digits}`)
    if (another !== undefined) throw new Error('Several records have these digits: enter more of the hash')
    if (record.agent === agent) go(record.seq)
    else location.hash = agentLink(record.agent, record.seq)
  }
  const expected = `Expected a number from 0 to ${headSeq}, or the first 8 or more digits of a hash`
  return (
    <Form
      class="go-to"
      submit={() => {
        if (text.trim() !== '') void run(open)
      }}
    >
      <label>
        <span class="hidden">Go to record, 0 to {countText(headSeq)}, or by its hash</span>
        <TextInput
          placeholder={`0 to ${headSeq}, or a hash`}
          autocapitalize="none"
          value={text}
          set={setText}
        />
      </label>
      <Button text="Go to record" type="submit" disabled={isBusy} />
      <Problem text={problem} />
    </Form>
  )
}

const READ_MS = 30_000

const NewRecord = lazy(async () => (await import('./new-record.js')).NewRecord)

const emptyRecord: RecordDraft = { type: 'record', text: '{\n  \n}' }

/** A button that opens the form for a new record, and then the record. */
function NewRecordButton(props: {
  session: SignedIn
  agent: string
  /** The records of the page, of which the form can copy the first. */
  rows: readonly RecordRow[]
  linkTo: (seq: number) => string
  reload: () => void
}) {
  const { session, agent, rows, linkTo, reload } = props
  const { service, who } = session
  const [isOpen, setOpen] = useState(false)
  const [draft, setDraft] = useState(emptyRecord)
  // Only the server writes to its strands.
  if (agent.startsWith('server::')) return null
  return (
    <>
      <ScopedButton
        text="New record"
        class="primary"
        // The rules of the agent define what a user can write.
        allowed={who.kind === 'user' || hasScope(who, 'records:write')}
        scope="records:write"
        onClick={() => setOpen(true)}
      />
      {isOpen && (
        <NewRecord
          service={service}
          agent={agent}
          draft={draft}
          setDraft={setDraft}
          model={rows.find(({ type, body }) => body !== undefined && !isReservedType(type))}
          written={(seq) => {
            setOpen(false)
            setDraft(emptyRecord)
            reload()
            location.hash = linkTo(seq)
          }}
          close={() => setOpen(false)}
        />
      )}
    </>
  )
}
