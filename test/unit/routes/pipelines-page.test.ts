import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { refusalsOf } from '../../../src/http/openapi/problems.js'
import { ingestRoutes } from '../../../src/routes/ingest.js'

const page = readFileSync(join(import.meta.dirname, '../../../docs/PIPELINES.md'), 'utf8')
const rows = [...page.matchAll(/^\| (\d{3}) ([^|]*)\|/gm)]

describe('the table of answers to ingest', () => {
  it('has each refusal of its routes once, under the status that it has', () => {
    const shown = rows.flatMap(([, status = '', codes = '']) =>
      [...codes.matchAll(/`(\w+)`/g)].map(([, code = '']) => `${status} ${code}`),
    )
    const documented = new Set(
      ingestRoutes.flatMap((route) => refusalsOf(route).map(({ code, status }) => `${status} ${code}`)),
    )
    expect(shown.toSorted()).toEqual([...documented].toSorted())
  })
})
