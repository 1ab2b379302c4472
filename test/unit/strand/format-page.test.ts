import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

function text(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
}

/** All texts in a JSON value, split into lines. */
function linesOf(value: unknown): string[] {
  if (typeof value === 'string') return value.split('\n')
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(linesOf)
}

describe('docs/FORMAT.md', () => {
  const page = text('docs/FORMAT.md')
  const known = new Set(
    ['records.json', 'tree.json', 'consistency.json', 'exports.json', 'checkpoints.json'].flatMap((name) =>
      linesOf(JSON.parse(text(`test/vectors/${name}`))),
    ),
  )

  it('shows only hashes, keys and signatures of the frozen vectors', () => {
    const shown = page.match(/\b[0-9a-f]{32,}\b/g) ?? []
    const vectorText = [...known].join('\n')
    expect(shown.length).toBeGreaterThan(20)
    expect(shown.filter((value) => !vectorText.includes(value))).toStrictEqual([])
  })

  it('shows only example lines of the frozen vectors', () => {
    const examples = [...page.matchAll(/^```\n(.*?)^```$/gms)].flatMap(([, block = '']) =>
      block.trimEnd().split('\n'),
    )
    expect(examples.length).toBeGreaterThan(15)
    expect(examples.filter((line) => !known.has(line))).toStrictEqual([])
  })

  it('shows the body, the salt and the header of the same record', () => {
    const { records }: { records: Record<string, string>[] } = JSON.parse(text('test/vectors/records.json'))
    const record = records[1]
    for (const part of ['header', 'salt', 'body', 'hash', 'signature']) expect(page).toContain(record?.[part])
  })

  it('shows the whole checkpoint', () => {
    const { checkpoint }: { checkpoint: { note: string } } = JSON.parse(text('test/vectors/tree.json'))
    expect(page).toContain(`\`\`\`\n${checkpoint.note}\`\`\``)
  })
})
