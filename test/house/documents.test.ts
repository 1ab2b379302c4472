import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { filesBelow, textFiles } from './tree.js'

/*
 * Everything that documents name must exist: each relative link of a Markdown file with its anchor, and each
 * page of docs/ that a document, a comment or a message cites by path. A page that is named without a path is
 * beside the document, in docs/ or at the root.
 */

const pages = textFiles().filter((path) => path.endsWith('.md'))

/** The text without code, in which links and headings do not count. */
function prose(markdown: string): string {
  return markdown
    .replaceAll(/^(```+)[^\n]*\n.*?^\1$/gms, '')
    .replaceAll(/`[^`\n]*`/g, (span) => span.replaceAll(/[[\]()]/g, ''))
}

/** The anchors of a page: its headings as GitHub names them, repeated names with `-1`. */
function anchorsOf(markdown: string): Set<string> {
  const seen = new Map<string, number>()
  const anchors = [...prose(markdown).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = '']) => {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    return times === 0 ? anchor : `${anchor}-${times}`
  })
  return new Set(anchors)
}

/** The links of a page into the repository: inline links, images and definitions. */
function linksOf(markdown: string): string[] {
  const text = prose(markdown)
  const inline = [...text.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)]
  const defined = [...text.matchAll(/^\[[^\]]+\]: *<?([^\s>]+)>?/gm)]
  return [...inline, ...defined].flatMap(([, target = '']) =>
    /^[a-z][a-z+.-]*:|^\/\//i.test(target) ? [] : [target],
  )
}

/** `page: link` of each dead link of the page; paths are relative to `root`. */
function deadLinks(page: string, root = '.'): string[] {
  const markdown = readFileSync(join(root, page), 'utf8')
  return linksOf(markdown).flatMap((link) => {
    const [path = '', anchor] = decodeURI(link).split('#')
    const target = path === '' ? join(root, page) : join(root, dirname(page), path)
    if (!existsSync(target)) return [`${page}: ${link}`]
    if (anchor === undefined || !target.endsWith('.md')) return []
    return anchorsOf(readFileSync(target, 'utf8')).has(anchor) ? [] : [`${page}: ${link}`]
  })
}

/** `file: path` of each missing page of docs/ that the file cites. ADRs may be cited by number alone. */
function deadCitations(file: string, root = '.'): string[] {
  const cited = readFileSync(join(root, file), 'utf8').matchAll(
    /(?<![\w./-])docs\/(?:adr\/\d{4}(?![\w-])|[\w-]+(?:\/[\w-]+)*\.(?:md|jsonl?|svg))/g,
  )
  const decisions = filesBelow(join(root, 'docs/adr')).map((path) => basename(path).slice(0, 4))
  return [...cited].flatMap(([path]) => {
    const exists =
      path.startsWith('docs/adr/') && !path.endsWith('.md')
        ? decisions.includes(path.slice(-4))
        : existsSync(join(root, path))
    return exists ? [] : [`${file}: ${path}`]
  })
}

/** `page: name` of each missing Markdown file that the page names without a path, as `FORMAT.md`. */
function unknownNames(page: string, root = '.'): string[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/\]\([^)]*\)|^\[[^\]]+\]:.*$/gm, ']')
  const named = text.matchAll(/(?<![\w./-])[\w-]+\.md\b/g)
  const near = [dirname(page), '.', 'docs']
  return [...named].flatMap(([name]) =>
    near.some((folder) => existsSync(join(root, folder, name))) ? [] : [`${page}: ${name}`],
  )
}

/** All dead links and citations of a page. */
const faultsOf = (page: string, root = '.') => [
  ...deadLinks(page, root),
  ...deadCitations(page, root),
  ...unknownNames(page, root),
]

describe('links and citations', () => {
  it('include pages and links with anchors', () => {
    expect(pages).toEqual(
      expect.arrayContaining(['README.md', 'CONTRIBUTING.md', 'docs/SECURITY.md', 'docs/adr/README.md']),
    )
    expect(
      pages.flatMap((page) => linksOf(readFileSync(page, 'utf8'))).filter((link) => link.includes('#'))
        .length,
    ).toBeGreaterThan(10)
  })

  it.each(pages)('have existing targets: %s', (page) => {
    expect(faultsOf(page)).toEqual([])
  })

  it('have existing targets in code', () => {
    // House tests plant wrong citations.
    const code = textFiles().filter((path) => !path.endsWith('.md') && !path.startsWith('test/house/'))
    expect(code.flatMap((path) => deadCitations(path))).toEqual([])
  })
})

describe('a planted violation', () => {
  const root = mkdtempSync(join(tmpdir(), 'strandfast-documents-'))
  const good =
    '# One page\n\n## A `heading`, with signs!\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n[no](link.md)\n```\n'

  beforeAll(() => {
    mkdirSync(join(root, 'docs/adr'), { recursive: true })
    writeFileSync(join(root, 'docs/GOOD.md'), good)
    writeFileSync(join(root, 'docs/adr/0001-first.md'), '# 0001 First\n')
  })

  afterAll(() => rmSync(root, { recursive: true, force: true }))

  const dead = (text: string) => {
    writeFileSync(join(root, 'docs/PAGE.md'), text)
    return faultsOf('docs/PAGE.md', root)
  }

  it.each([
    '(GONE.md)',
    '(GOOD.md#gone)',
    '(#gone)',
    '(GOOD.md#no-heading)',
    '(GOOD.md#twice-2)',
    '(../docs/GONE.md "A title")',
  ])('is found: a link %s', (link) => expect(dead(`# Page\n\nSee [this]${link}.\n`)).toHaveLength(1))

  it.each(['docs/GONE.md', 'docs/adr/0002', 'docs/adr/0002-second.md'])(
    'is found: a citation of %s',
    (path) => {
      expect(dead(`See ${path}.\n`)).toHaveLength(1)
    },
  )

  it.each(['(contract.md 6.5)', '`notes.md`'])('is found: a name without a path, %s', (name) => {
    expect(dead(`As ${name} has it.\n`)).toHaveLength(1)
  })

  it('is found: a definition with a missing target', () => {
    expect(dead('See [this].\n\n[this]: GONE.md\n')).toHaveLength(1)
  })

  it('is not found for existing targets, other sites and code', () => {
    const links = [
      '(GOOD.md)',
      '(GOOD.md#a-heading-with-signs)',
      '(GOOD.md#twice-1)',
      '(adr)',
      '(#page)',
      '(https://example.com/x.md)',
    ]
    const text = links.map((link) => `[this]${link}`).join(' ')
    expect(dead(`# Page\n\n${text} docs/GOOD.md docs/adr/0001 \`[not](GONE.md)\`\n`)).toEqual([])
    expect(dead(good)).toEqual([])
  })
})

describe('the decisions', () => {
  const decisions = filesBelow('docs/adr').filter((path) => /\/\d{4}-[a-z0-9-]+\.md$/.test(path))
  const index = readFileSync('docs/adr/README.md', 'utf8')

  it('are found, and docs/adr has no other files', () => {
    expect(decisions.length).toBeGreaterThan(30)
    expect(filesBelow('docs/adr').filter((path) => !decisions.includes(path))).toEqual(['docs/adr/README.md'])
    expect(decisions.every((path) => statSync(path).size > 0)).toBe(true)
  })

  it('have unique numbers', () => {
    const numbers = decisions.map((path) => basename(path).slice(0, 4))
    expect(new Set(numbers).size).toBe(numbers.length)
  })

  it.each(decisions)('follow the template: %s', (path) => {
    const text = readFileSync(path, 'utf8')
    expect(text.startsWith(`# ${basename(path).slice(0, 4)} `)).toBe(true)
    expect([...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)).toEqual([
      'Context',
      'Decision',
      'Consequences',
    ])
  })

  it.each(decisions)('are listed in the index: %s', (path) => {
    const [title = ''] = readFileSync(path, 'utf8').split('\n')
    const item = new RegExp(
      `^- \\[${basename(path).slice(0, 4)}\\]\\(${basename(path)}\\) \\*\\*(.*?)\\*\\*:\\s+\\S`,
      'm',
    ).exec(index)
    expect(item?.[1]).toBe(title.slice('# 0000 '.length))
  })
})
