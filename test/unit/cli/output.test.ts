import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Columns, Table } from '../../../src/cli/output.js'

let printed = ''
let reported = ''
beforeEach(() => {
  printed = ''
  reported = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text)
    return true
  })
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    reported += String(text)
    return true
  })
})
afterEach(() => void vi.restoreAllMocks())

interface Row {
  name: string
  tags: string[]
  on: boolean | null
  body: string
}

const columns: Columns<Row> = {
  name: ({ name }) => name,
  tags: ({ tags }) => tags,
  on: ({ on }) => on,
  body: ({ body }) => body,
}

const row = (name: string, more: Partial<Row> = {}): Row => ({ name, tags: [], on: null, body: '', ...more })

describe('a table', () => {
  it('aligns columns, also of wide characters, and widens them for later rows', async () => {
    const table = new Table(columns, Infinity)
    await table.print([row('a', { tags: ['x', 'y'], on: true }), row('日ㄅ', { on: false, body: 'end' })])
    await table.print([row('longer name')])
    table.end('none')
    expect(printed).toBe(
      [
        'NAME  TAGS  ON   BODY',
        'a     x, y  yes  -',
        '日ㄅ  -     no   end',
        'longer name  -     -    -',
        '',
      ].join('\n'),
    )
    expect(reported).toBe('')
  })

  it('cuts lines at the width of the terminal and says so once', async () => {
    const table = new Table(columns, 24)
    await table.print([row('a', { body: 'x'.repeat(50) }), row('b', { body: '漢字漢字漢字漢字' })])
    table.end('none')
    const [, first, second] = printed.split('\n')
    expect([first, second]).toEqual(['a     -     -   xxxxxxx…', 'b     -     -   漢字漢…'])
    expect(reported).toMatch(/^Lines are cut at the width of the terminal; [^\n]+\n$/)
  })

  it('escapes what a terminal would obey', async () => {
    await new Table(columns, Infinity).print([row('\u001b[2J\n', { tags: ['\u202e'], body: '\u009b8m' })])
    expect(printed).toContain('\\u001b[2J\\u000a  \\u202e  -   \\u009b8m\n')
  })

  it('reports that there are no rows', () => {
    new Table(columns, 80).end('No keys')
    expect([printed, reported]).toEqual(['', 'No keys\n'])
  })
})
