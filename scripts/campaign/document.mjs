import { existsSync, readFileSync } from 'node:fs'
import { table } from '../markdown-table.mjs'
import { parts } from './parts.mjs'

const PAGE = 'docs/GUARANTEES.md'
const RUNS = 'docs/campaigns.jsonl'
const marks = ['<!-- made from docs/campaigns.jsonl -->', '<!-- end: campaigns -->']

/** The page whose figures are made from recorded campaigns, for scripts/generate.mjs; nothing where there is no page. */
export function campaignDocuments() {
  if (!existsSync(PAGE)) return []
  const lines = readFileSync(RUNS, 'utf8').trimEnd().split('\n')
  const page = readFileSync(PAGE, 'utf8')
  return [
    [
      PAGE,
      withCampaigns(
        page,
        lines.map((line) => JSON.parse(line)),
      ),
    ],
  ]
}

/**
 * Puts a table of campaigns between the marks of a page: of each part the newest run, and the one that did most of what its
 * promised number counts.
 * @throws {Error} when the page lacks the marks
 */
export function withCampaigns(page, runs) {
  const [from, to] = marks.map((mark) => page.indexOf(mark))
  if (from < 0 || to < from) throw new Error(`${PAGE} lacks the marks of campaigns`)
  const rows = Object.entries(parts).flatMap(([name, { title }]) => {
    const own = runs.filter(({ part }) => part === name)
    if (own.length === 0) return []
    const longest = own.reduce((most, run) => (sizeOf(run) > sizeOf(most) ? run : most))
    return [[`\`${name}\``, title, textOf(longest), textOf(own.at(-1))]]
  })
  const made = table(['Campaign', 'What happens', 'Longest run', 'Newest run'], rows)
  return `${page.slice(0, from)}${marks[0]}\n\n${made}\n\n${page.slice(to)}`
}

/** How much a run did, by the number that its part promises. */
function sizeOf({ part, numbers, passes }) {
  const [counted = 'passes'] = Object.keys(parts[part].until)
  return numbers[counted] ?? (counted === 'passes' ? passes : 0)
}

function textOf({ at, commit, seed, numbers, passes, minutes, failures }) {
  const counted = Object.entries(numbers).map(
    ([name, value]) => `${value.toLocaleString('en')} ${wordsOf(name)}`,
  )
  const what = counted.length === 0 ? `${passes} passes` : counted.join(', ')
  const found = failures.length === 0 ? 'no failure' : `**${failures.length} failures**`
  const origin = [
    at.slice(0, 10),
    ...(commit === null ? [] : [`commit ${commit}`]),
    ...(seed === null ? [] : [`seed ${seed}`]),
    ...(minutes === null ? [] : [`${minutes} min`]),
  ]
  return `${what}: ${found} (${origin.join(', ')})`
}

/** `logLosses` as "log losses". */
const wordsOf = (name) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
