import { existsSync, readFileSync } from 'node:fs'
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
 * Puts a list of campaigns between the markers of a page: for each part the newest run, and the longest one.
 * @throws {Error} if the page lacks the markers
 */
export function withCampaigns(page, runs) {
  const [from, to] = markers.map((marker) => page.indexOf(marker))
  if (from < 0 || to < from) throw new Error(`${PAGE} lacks the markers of campaigns`)
  const items = Object.entries(parts).flatMap(([name, { title }]) => {
    const ofPart = runs.filter(({ part }) => part === name)
    if (ofPart.length === 0) return []
    const longest = ofPart.reduce((most, run) => (isLonger(run, most) ? run : most))
    const newest = ofPart.at(-1)
    const shown =
      longest === newest
        ? `Longest and newest run: ${textOf(newest)}`
        : `Longest run: ${textOf(longest)}. Newest run: ${textOf(newest)}`
    return [`- **${name}**: ${title}. ${shown}.`]
  })
  return `${page.slice(0, from)}${markers[0]}\n\n${items.join('\n')}\n\n${page.slice(to)}`
}

/** Whether a run is longer than another by the number that their part promises, or else by its time. */
function isLonger(run, other) {
  const difference = sizeOf(run) - sizeOf(other)
  return difference > 0 || (difference === 0 && run.minutes > other.minutes)
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
  const what = counted.length === 0 ? numbered(passes, 'pass', 'passes') : counted.join(', ')
  const found =
    failures.length === 0 ? 'no failure' : `**${numbered(failures.length, 'failure', 'failures')}**`
  const origin = [
    at.slice(0, 10),
    ...(commit === null ? [] : [`commit ${commit}`]),
    ...(seed === null ? [] : [`seed ${seed}`]),
    ...(minutes === null ? [] : [`${minutes} min`]),
  ]
  return `${what}: ${found} (${origin.join(', ')})`
}

const numbered = (count, one, many) => `${count} ${count === 1 ? one : many}`

/** `logLosses` as "log losses". */
const wordsOf = (name) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
