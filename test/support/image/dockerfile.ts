import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

/*
 * Builds a Dockerfile without a registry. A stage is a folder that starts as a Debian made by debootstrap
 * with this Node and its npm, and RUN uses chroot. Only the instructions of this repository's Dockerfile are
 * supported.
 */

/** The result of a Dockerfile: the root of the last stage, and how it is started. */
export interface Image {
  root: string
  workdir: string
  user: string
  env: Record<string, string>
  command: string[]
  health: string[]
  stopSignal: string
  volumes: string[]
}

/** The instructions of a Dockerfile. */
export function instructionsOf(text: string): [name: string, rest: string][] {
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line): [string, string] => [line.split(' ', 1)[0] ?? '', line.slice(line.indexOf(' ') + 1)])
}

/** Builds the image in `folder` from the files of `context`. */
export function buildImage(text: string, { folder, context }: { folder: string; context: string }): Image {
  const stages = new Map<string, string>()
  let image = freshImage('')
  for (const [name, rest] of instructionsOf(text)) {
    if (name === 'FROM') {
      const root = mkdtempSync(join(folder, 'stage-'))
      execFileSync('cp', ['-a', `${debianRoot()}/.`, root])
      // Temporary directories are private to their owner, but the image runs as another user.
      chmodSync(root, 0o755)
      image = freshImage(root)
      const [, stage] = / AS (\S+)$/.exec(rest) ?? []
      if (stage === undefined) continue
      stages.set(stage, root)
      addNode(root)
    } else execute(image, [name, rest], { stages, context })
  }
  return image
}

function freshImage(root: string): Image {
  const env = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }
  return { root, workdir: '/', user: '0', env, command: [], health: [], stopSignal: '', volumes: [] }
}

function execute(
  image: Image,
  [name, rest]: [string, string],
  { stages, context }: { stages: Map<string, string>; context: string },
): void {
  if (name === 'WORKDIR') {
    image.workdir = rest
    mkdirSync(join(image.root, rest), { recursive: true })
  } else if (name === 'ENV') {
    for (const one of rest.split(' '))
      image.env[one.slice(0, one.indexOf('='))] = one.slice(one.indexOf('=') + 1)
  } else if (name === 'COPY') {
    const words = rest.split(' ')
    const stage = words[0]?.startsWith('--from=') === true ? (words.shift() ?? '').slice(7) : undefined
    const from = stage === undefined ? context : (stages.get(stage) ?? '')
    const target = words.pop() ?? ''
    for (const word of words) {
      if (stage === undefined && !isSent(context, word)) throw new Error(`.dockerignore leaves out ${word}`)
      copy(
        join(from, word),
        resolve(join(image.root, image.workdir), place(image, target)),
        target.endsWith('/'),
      )
    }
  } else if (name === 'RUN') runIn(image, ['sh', '-c', rest])
  else if (name === 'USER')
    image.user = execFileSync('chroot', [image.root, 'id', '-u', rest]).toString().trim()
  else if (name === 'VOLUME') image.volumes.push(rest)
  else if (name === 'STOPSIGNAL') image.stopSignal = rest
  else if (name === 'CMD') image.command = JSON.parse(rest)
  else if (name === 'HEALTHCHECK') image.health = JSON.parse(rest.slice(rest.indexOf('[')))
  else if (name !== 'EXPOSE') throw new Error(`Instruction ${name} is not supported`)
}

/** Whether .dockerignore, which excludes everything except its listed paths, includes a file or folder. */
function isSent(context: string, path: string): boolean {
  const lines = readFileSync(join(context, '.dockerignore'), 'utf8').split('\n')
  return lines.some((line) => line.startsWith('!') && `${path}/`.startsWith(`${line.slice(1)}/`))
}

function place(image: Image, target: string): string {
  return target.startsWith('/') ? join(image.root, target) : target
}

function copy(from: string, target: string, isFolder: boolean): void {
  const to = isFolder ? join(target, basename(from)) : target
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { recursive: true, verbatimSymlinks: true })
}

/**
 * Returns the command line that runs a command in the image, as its user and in its folder, with a temporary
 * /proc. The command replaces the program, so that signals reach it.
 */
export function inImage(image: Image, command: readonly string[]): [program: string, words: string[]] {
  const inside = 'cd "$0" && exec "$@"'
  const outside = 'mount -t proc proc "$0/proc" && exec chroot "$@"'
  const words = [`--userspec=${image.user}:${image.user}`, image.root, 'sh', '-c', inside, image.workdir]
  return ['unshare', ['--mount', 'sh', '-c', outside, image.root, ...words, ...command]]
}

function runIn(image: Image, command: readonly string[]): void {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  // No settings of this machine may get into the image.
  const { NODE_COMPILE_CACHE: _none, ...own } = process.env
  const env = { ...own, ...image.env, HOME: '/root', npm_config_registry: registry }
  execFileSync(...inImage(image, command), { env, stdio: 'pipe' })
}

/** A minimal Debian, created once and stored beside other temporary files. */
function debianRoot(): string {
  const cached = join(tmpdir(), 'strandfast-debian-bookworm')
  if (existsSync(cached)) return cached
  const fresh = mkdtempSync(`${cached}-`)
  execFileSync('debootstrap', ['--variant=minbase', 'bookworm', fresh], { stdio: 'pipe' })
  cpSync('/etc/resolv.conf', join(fresh, 'etc/resolv.conf'))
  renameSync(fresh, cached)
  return cached
}

/** Adds Node and npm, like the official image of Node. */
function addNode(root: string): void {
  // Not `npm root --global`, which is beside the running Node, while npm may be beside another one.
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())
  cpSync(realpathSync(process.execPath), join(root, 'usr/local/bin/node'))
  cpSync(join(dirname(npm), '..'), join(root, 'usr/local/lib/node_modules/npm'), {
    recursive: true,
    dereference: true,
  })
  // The machine may need an extra certificate to reach the registry.
  const certificates = process.env['NODE_EXTRA_CA_CERTS'] ?? ''
  if (existsSync(certificates)) copy(certificates, join(root, certificates), false)
  execFileSync('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm')])
}
