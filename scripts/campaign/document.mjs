import { existsSync, readFileSync } from 'node:fs'
import { table } from '../markdown-table.mjs'
import { parts } from './parts.mjs'

const PAGE = 'docs/GUARANTEES.md'
const RUNS = 'docs/campaigns.jsonl'
const markers = ['<!-- made from docs/campaigns.jsonl -->', '<!-- end: campaigns -->']

/** The page with figures of recorded campaigns, for scripts/generate.mjs; empty without a page. */
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
 * Puts a table of campaigns between the markers of a page: for each part the newest run, and the longest one
 * by its promised number.
 * @throws {Error} if the page lacks the markers
 */
export function withCampaigns(page, runs) {
  const [from, to] = markers.map((marker) => page.indexOf(marker))
  if (from < 0 || to < from) throw new Error(`${PAGE} lacks the markers of campaigns`)
  const rows = Object.entries(parts).flatMap(([name, { title }]) => {
    const ofPart = runs.filter(({ part }) => part === name)
    if (ofPart.length === 0) return []
    const longest = ofPart.reduce((most, run) => (sizeOf(run) > sizeOf(most) ? run : most))
    return [[`\`${name}\``, title, textOf(longest), textOf(ofPart.at(-1))]]
  })
  const rendered = table(['Campaign', 'What happens', 'Longest run', 'Newest run'], rows)
  return `${page.slice(0, from)}${markers[0]}\n\n${rendered}\n\n${page.slice(to)}`
}

/** The size of a run by the number that its part promises. */
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
