import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The licenses of all packages that bundled modules belong to. @param {{modules?: object}[]} output chunks */
export function licensesOf(output) {
  const folders = output
    .flatMap(({ modules = {} }) => Object.keys(modules))
    .flatMap((path) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(path.replaceAll('\\', '/'))?.[0] ?? [])
  return [...new Set(folders)].sort().map(licenseOf).join('\n')
}

function licenseOf(folder) {
  const { name, version, license, ...manifest } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  )
  const head = `${name} ${version}: ${license}\n`
  // Strandfast has this license too, so its text is not repeated.
  if (license === 'Apache-2.0') {
    const by = [manifest.contributors ?? manifest.author].flat().map((one) => one.name ?? one)
    return `${head}by ${by.join(', ')}, https://www.apache.org/licenses/LICENSE-2.0\n`
  }
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
  return file === undefined ? head : `${head}\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
}
