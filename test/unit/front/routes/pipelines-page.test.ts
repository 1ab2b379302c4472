import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorCatalogue } from '../../../../src/base/errors.js'
import { refusalsOf } from '../../../../src/front/http/openapi/problems.js'
import { ingestRoutes } from '../../../../src/front/routes/ingest.js'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/PIPELINES.md'), 'utf8')
const rows = [...page.matchAll(/^\| (\d{3}) ([^|]*)\|/gm)]

describe('the table of answers to ingest', () => {
  const shown = rows.flatMap(([, status = '', codes = '']) =>
    [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']) => `${status} ${code}`),
  )
  const documented = ingestRoutes.flatMap((route) =>
    refusalsOf(route).map(({ code, status }) => `${status} ${code}`),
  )

  it('contains each error of the ingest routes once, under its status', () => {
    expect(documented.filter((refusal) => !shown.includes(refusal))).toEqual([])
    expect(shown).toEqual([...new Set(shown)])
  })

  it('contains no other errors', () => {
    const catalogued = Object.entries(errorCatalogue).map(([code, { status }]) => `${status} ${code}`)
    expect(shown.filter((refusal) => ![...catalogued, ...documented].includes(refusal))).toEqual([])
  })
})
