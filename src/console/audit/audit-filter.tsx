import { useState } from 'preact/hooks'
import { authMeanings, serverAudit, serverMeanings, type AuditFilter } from '../parts/audit-events.js'
import { Choice, Field, Moment } from '../parts/field.js'
import { msOfField } from '../parts/format.js'

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

/** The initial filter: the last seven days. */
export function firstFilter(): AuditFilter {
  return { span: spanOf('week', '', ''), type: '', outcome: '', user: '' }
}

/** The filter of the list. Each field takes effect immediately. */
export function AuditFilters(props: {
  agent: string
  filter: AuditFilter
  set: (filter: AuditFilter) => void
}) {
  const { agent, filter, set } = props
  const [period, setPeriod] = useState<Period>('week')
  const [between, setBetween] = useState({ from: '', to: '' })
  const isServer = agent === serverAudit
  const choose = (chosen: Period, { from, to } = between): void => {
    setPeriod(chosen)
    setBetween({ from, to })
    set({ ...filter, span: spanOf(chosen, from, to) })
  }
  return (
    <div class="filter" role="group" aria-label="Filter">
      <div class="filter-line">
        <Choice name="Time" value={period} options={periods} set={(text) => choose(periodOf(text))} />
        <Choice
          name="Event"
          value={filter.type}
          options={{ '': 'All', ...(isServer ? serverMeanings : authMeanings) }}
          set={(type) => set({ ...filter, type })}
        />
        {!isServer && (
          <>
            <Choice
              name="Outcome"
              value={filter.outcome}
              options={{ '': 'All', failure: 'failure', success: 'success' }}
              set={(text) => {
                const outcome = text === 'failure' || text === 'success' ? text : ''
                set({ ...filter, outcome })
              }}
            />
            <Field
              type="search"
              name="User ID, e-mail or its HMAC"
              value={filter.user}
              set={(user) => set({ ...filter, user: user.trim() })}
            />
          </>
        )}
      </div>
      {period === 'own' && (
        <div class="filter-line">
          <Moment name="From" value={between.from} set={(from) => choose('own', { ...between, from })} />
          <Moment name="To" value={between.to} set={(to) => choose('own', { ...between, to })} />
        </div>
      )}
    </div>
  )
}

function periodOf(text: string): Period {
  return text === 'day' || text === 'month' || text === 'all' || text === 'own' ? text : 'week'
}

function spanOf(period: Period, from: string, to: string): AuditFilter['span'] {
  const days = daysOf[period]
  if (days !== undefined) return { fromMs: Date.now() - days * DAY_MS, toMs: undefined }
  return period === 'all'
    ? { fromMs: undefined, toMs: undefined }
    : { fromMs: msOfField(from), toMs: msOfField(to) }
}
