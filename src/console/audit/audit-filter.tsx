import { useMemo, useState } from 'preact/hooks'
import { authMeanings, serverAudit, serverMeanings, type AuditFilter } from '../parts/audit-events.js'
import { choiceType, cursorsType, textType, timeType, useAddress } from '../parts/address.js'
import { Choice, Field, Moment } from '../parts/field.js'
import { fieldOfMs, msOfField } from '../parts/format.js'

const periods = {
  day: 'Last 24 hours',
  week: 'Last 7 days',
  month: 'Last 30 days',
  all: 'All',
  own: 'Between',
}

type Period = keyof typeof periods

const DAY_MS = 86_400_000
const daysOf: Partial<Record<Period, number>> = { day: 1, week: 7, month: 30 }

const periodType = choiceType<Period>(['week', 'day', 'month', 'all', 'own'])
const outcomeType = choiceType<AuditFilter['outcome']>(['', 'failure', 'success'])
const typedTimeType = { ...timeType, isStep: false }

/** The filter in the address, at first the last seven days. Another filter begins with its first page. */
export function useAuditFilter() {
  const [period, setPeriod] = useAddress('period', periodType)
  const [fromMs, setFrom] = useAddress('from', typedTimeType)
  const [toMs, setTo] = useAddress('to', typedTimeType)
  const [type, setType] = useAddress('event', textType)
  const [outcome, setOutcome] = useAddress('outcome', outcomeType)
  const [user, setUser] = useAddress('user', textType)
  const [cursors, setCursors] = useAddress('page', cursorsType)
  // The last days end when they are chosen.
  const span = useMemo(() => spanOf(period, { fromMs, toMs }), [period, fromMs, toMs])
  const filter: AuditFilter = { span, type, outcome, user }
  const change = (
    next: Partial<Omit<AuditFilter, 'span'> & AuditFilter['span'] & { period: Period }>,
  ): void => {
    setCursors([])
    if (next.period !== undefined) setPeriod(next.period)
    if ('fromMs' in next) setFrom(next.fromMs)
    if ('toMs' in next) setTo(next.toMs)
    if (next.type !== undefined) setType(next.type)
    if (next.outcome !== undefined) setOutcome(next.outcome)
    if (next.user !== undefined) setUser(next.user)
  }
  return { filter, period, fromMs, toMs, change, cursors, setCursors }
}

/** The filter of the list. Each field takes effect immediately. */
export function AuditFilters({ agent, at }: { agent: string; at: ReturnType<typeof useAuditFilter> }) {
  const { filter, period, fromMs, toMs, change } = at
  const isServer = agent === serverAudit
  return (
    <div class="filter" role="group" aria-label="Filter">
      <div class="filter-line">
        <Choice
          name="Time"
          value={period}
          options={periods}
          set={(text) => change({ period: periodType.read([text]) })}
        />
        <Choice
          name="Event"
          value={filter.type}
          options={{ '': 'All', ...(isServer ? serverMeanings : authMeanings) }}
          set={(type) => change({ type })}
        />
        {!isServer && (
          <>
            <Choice
              name="Outcome"
              value={filter.outcome}
              options={{ '': 'All', failure: 'failure', success: 'success' }}
              set={(text) => change({ outcome: outcomeType.read([text]) })}
            />
            <Field
              type="search"
              name="User ID, e-mail or its HMAC"
              value={filter.user}
              set={(user) => change({ user: user.trim() })}
            />
          </>
        )}
      </div>
      {period === 'own' && (
        <div class="filter-line">
          <TypedMoment name="From" ms={fromMs} set={(ms) => change({ fromMs: ms })} />
          <TypedMoment name="To" ms={toMs} set={(ms) => change({ toMs: ms })} />
        </div>
      )}
    </div>
  )
}

/** A field for a time. What is typed stays as it is, also before it is a time. */
function TypedMoment(props: { name: string; ms: number | undefined; set: (ms: number | undefined) => void }) {
  const { name, ms, set } = props
  const [text, setText] = useState('')
  const shown = msOfField(text) === ms ? text : ms === undefined ? '' : fieldOfMs(ms)
  return (
    <Moment
      name={name}
      value={shown}
      set={(typed) => {
        setText(typed)
        set(msOfField(typed))
      }}
    />
  )
}

function spanOf(period: Period, between: AuditFilter['span']): AuditFilter['span'] {
  const days = daysOf[period]
  if (days !== undefined) return { fromMs: Date.now() - days * DAY_MS, toMs: undefined }
  return period === 'all' ? { fromMs: undefined, toMs: undefined } : between
}
