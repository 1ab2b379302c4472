import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeBelow, stylesBelow, textFiles } from './tree.js'

/*
 * Everything that a comment cites must exist: a path of this repository, a file by its name alone, a section
 * of a page. NAME in a path stands for any name.
 */

/** The folders whose comments are checked. */
const folders = ['bench', 'examples', 'scripts', 'src', 'test', 'workers']

/** The files of a folder whose comments are checked. */
const readBelow = (folder: string): string[] => [...codeBelow(folder), ...stylesBelow(folder)]

/** The comments of a file, each as one line: block comments, and consecutive `//` lines. */
function commentsOf(path: string): string[] {
  const code = readFileSync(path, 'utf8')
  // A string may contain the beginning of a block comment, so a block must start a line; in JSX, after a
  // brace.
  const block = path.endsWith('.css') ? /\/\*([\s\S]*?)\*\//g : /^[ \t]*(?:\{[ \t]*)?\/\*([\s\S]*?)\*\//gm
  const blocks = [...code.matchAll(block)].map(([, text = '']) => text.replaceAll(/^[ \t]*\*+/gm, ' '))
  if (path.endsWith('.css')) return blocks.map((comment) => comment.replaceAll(/\s+/g, ' '))
  const lines = [...code.matchAll(/(?:^|[ \t])\/\/ .*(?:\n[ \t]*\/\/ .*)*/gm)].map(([run]) =>
    run.replaceAll(/^[ \t]*\/\/ /gm, ' '),
  )
  return [...blocks, ...lines].map((comment) => comment.replaceAll(/\s+/g, ' '))
}

/** The section names of a page: headings and bold beginnings of list items. */
function partsOf(page: string): Set<string> {
  const parts = readFileSync(page, 'utf8').matchAll(/^#{1,6} +(.+?) *$|\*\*(.+?)[.:]?\*\*/gm)
  return new Set([...parts].map(([, heading, bold]) => heading ?? bold ?? ''))
}

/** Repository paths that a comment cites. */
function pathsOf(comment: string): string[] {
  const path =
    /(?<![\w./@-])(?:bench|docs|examples|scripts|src|test|workers)\/[\w./-]*\.(?:css|html|json|md|mjs|py|svg|tsx?)\b/g
  return [...comment.matchAll(path)].map(([cited]) => cited).filter((cited) => !/\bNAME\b/.test(cited))
}

/** Files that a comment cites by name alone. */
function namesOf(comment: string): string[] {
  return [...comment.matchAll(/(?<![\w./*@-])[\w-]+(?:\.[\w-]+)*\.(?:css|md|mjs|tsx?)\b(?![\w/])/g)].map(
    ([name]) => name,
  )
}

/**
 * `page, section` of each section that a comment cites in parentheses, as
 * `(docs/FORMAT.md, Header; RFC 8785)`.
 */
function sectionsOf(comment: string): { page: string; section: string }[] {
  return [...comment.matchAll(/\(([^()]*)\)/g)]
    .flatMap(([, inside = '']) => inside.split('; '))
    .flatMap((part) => {
      const [, page, section] = /^(docs\/[\w/-]+\.md), (.+)$/.exec(part) ?? []
      return page === undefined || section === undefined ? [] : [{ page, section }]
    })
}

/** `file: citation` of each dead citation of a file's comments. */
function deadCitations(file: string, names: ReadonlySet<string>, root = '.'): string[] {
  const comments = commentsOf(join(root, file))
  const paths = comments.flatMap(pathsOf).filter((path) => !existsSync(join(root, path)))
  const unknown = comments.flatMap(namesOf).filter((name) => !names.has(name))
  const sections = comments
    .flatMap(sectionsOf)
    .filter(({ page }) => existsSync(join(root, page)))
    .filter(({ page, section }) => {
      const parts = partsOf(join(root, page))
      return !parts.has(section) && !section.split(' and ').every((one) => parts.has(one))
    })
    .map(({ page, section }) => `${page}, ${section}`)
  return [...paths, ...unknown, ...sections].map((citation) => `${file}: ${citation}`)
}

describe('the citations of comments', () => {
  const names = new Set(textFiles().map((path) => basename(path)))
  const files = folders.flatMap(readBelow)
  const comments = files.flatMap(commentsOf)

  it('are found in every folder of the list', () => {
    expect(folders.filter((folder) => readBelow(folder).length === 0)).toEqual([])
    expect(files).toContain('src/console/main.tsx')
    expect(files).toContain('src/console/base.css')
    expect(comments.flatMap(pathsOf)).toContain('docs/adr/0014-proposals.md')
    expect(comments.flatMap(namesOf)).toContain('header.ts')
    expect(comments.flatMap(sectionsOf)).toContainEqual({ page: 'docs/FORMAT.md', section: 'Header' })
  })

  it.each(folders)('have existing targets: %s', (folder) => {
    expect(readBelow(folder).flatMap((path) => deadCitations(path, names))).toEqual([])
  })
})

describe('a planted citation', () => {
  const root = mkdtempSync(join(tmpdir(), 'strandfast-citations-'))
  const names = new Set(['GOOD.md', 'good.ts', 'good.tsx', 'good.css'])

  beforeAll(() => {
    mkdirSync(join(root, 'docs/adr'), { recursive: true })
    mkdirSync(join(root, 'src/strand'), { recursive: true })
    writeFileSync(join(root, 'docs/GOOD.md'), '# One page\n\n## A section\n\n- **Another.** One.\n')
    writeFileSync(join(root, 'docs/adr/0001-first.md'), '# 0001 First\n')
    for (const ending of ['ts', 'tsx', 'css']) writeFileSync(join(root, `src/strand/good.${ending}`), '')
  })

  afterAll(() => rmSync(root, { recursive: true, force: true }))

  const dead = (code: string, file = 'src/planted.ts') => {
    writeFileSync(join(root, file), code)
    return deadCitations(file, names, root)
  }

  it.each([
    'notes.md',
    'notes.md 6.5',
    'gone.ts',
    'gone.tsx',
    'gone.css',
    'docs/GONE.md',
    'docs/adr/0002-second.md',
    'src/strand/gone.ts',
    'src/strand/gone.tsx',
    'src/strand/gone.css',
    'workers/gone/gone.mjs',
    'docs/GOOD.md, No section',
    'docs/GOOD.md, A section and No section',
    'RFC 8785; docs/GOOD.md, No section',
  ])('is found in each kind of comment if its target is missing: %s', (citation) => {
    expect(dead(`/** Purpose (${citation}). */\nexport const one = 1\n`)).toHaveLength(1)
    expect(dead(`/*\n * Purpose\n * (${citation.replace(', ', ',\n * ')}).\n */\n`)).toHaveLength(1)
    expect(
      dead(`export const one = 1\n  // Purpose\n  // (${citation.replace(', ', ',\n  // ')}).\n`),
    ).toHaveLength(1)
    expect(dead(`export const one = 1 // Purpose (${citation}).\n`)).toHaveLength(1)
  })

  it.each(['gone.ts', 'src/strand/gone.tsx', 'docs/GOOD.md, No section'])(
    'is found in .tsx files and style sheets if its target is missing: %s',
    (citation) => {
      const file = 'src/planted.tsx'
      const around = (comment: string) => `export const One = () => (\n  <p>\n    ${comment}\n  </p>\n)\n`
      const found = [`${file}: ${citation}`]
      expect(dead(`/** Purpose (${citation}). */\n${around('one')}`, file)).toEqual(found)
      expect(dead(around(`{/* Purpose (${citation}). */}`), file)).toEqual(found)
      expect(dead(around(`{one} // Purpose (${citation}).`), file)).toEqual(found)
      const style = `p {\n  margin: 0; /* Purpose\n * (${citation.replace(', ', ',\n * ')}). */\n}\n`
      expect(dead(style, 'src/planted.css')).toEqual([`src/planted.css: ${citation}`])
    },
  )

  it('is not found if its target exists, or in code', () => {
    const citations = [
      'docs/GOOD.md',
      'GOOD.md',
      'docs/GOOD.md, A section',
      'docs/GOOD.md, A section and Another',
      'docs/adr/0001-first.md; RFC 8785',
      'src/strand/good.ts',
      'good.ts',
      'src/strand/good.tsx',
      'good.tsx',
      'src/strand/good.css',
      'good.css',
      'https://example.com/docs/x.md',
      'test/vectors/*.json',
      'src/routes/NAME.ts',
    ]
    expect(dead(`/** ${citations.map((one) => `(${one})`).join(' ')} */\nread('docs/GONE.md')\n`)).toEqual([])
  })
})
