import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { leftOut } from '../support/faults/rounds.js'
import { buildImage, inImage, type Image } from '../support/image/dockerfile.js'
import { freePort } from '../support/server/free-port.js'

/* The image: the steps of the Dockerfile are executed in a chroot, and the result is run there. */

const missing =
  process.getuid?.() !== 0 || spawnSync('unshare', ['--mount', 'true']).status !== 0
    ? 'only root can make a chroot and mount its /proc'
    : spawnSync('debootstrap', ['--version']).error === undefined
      ? undefined
      : 'debootstrap is not here: apt-get install debootstrap'

describe.skipIf(leftOut(missing))('the image of the Dockerfile', { timeout: 600_000 }, () => {
  let folder: string
  let image: Image
  let child: ChildProcess | undefined
  let output = ''
  let url = ''
  let env: Record<string, string>

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'image-'))
    image = buildImage(readFileSync('Dockerfile', 'utf8'), { folder, context: '.' })
    const port = await freePort()
    env = { ...image.env, SERVICE_PORT: String(port), SERVICE_HOST: '127.0.0.1', SERVICE_SHARDS: '1' }
    url = `http://127.0.0.1:${port}`
    const started = spawn(...inImage(image, image.command), { env })
    child = started
    await new Promise<void>((resolve, reject) => {
      started.once('exit', () => reject(new Error(output)))
      const take = (part: Buffer) => {
        output += part.toString()
        if (output.includes('listening on')) resolve()
      }
      started.stdout.on('data', take)
      started.stderr.on('data', take)
    })
  }, 600_000)
  afterAll(() => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  it('serves as a user other than root, and is healthy', async () => {
    expect(image.user).toBe('1000')
    const [data = ''] = image.volumes
    expect(statSync(join(image.root, data)).uid).toBe(1_000)
    expect(statSync(join(image.root, data, 'root.key')).uid).toBe(1_000)
    const key = readFileSync(join(image.root, data, 'root.key'), 'utf8').trim()
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ data: { n: 1 } })
    const written = await fetch(`${url}/v1/agents/default/records`, { method: 'POST', headers, body })
    expect(written.status).toBe(201)
    expect((await fetch(`${url}/console`)).status).toBe(200)
    const healthy = () => spawnSync(...inImage(image, image.health), { env }).status
    expect(healthy()).toBe(0)
    env = { ...env, SERVICE_PORT: '1' }
    expect(healthy()).toBe(1)
  })

  it('contains no npm, and no binaries for other systems', () => {
    expect(existsSync(join(image.root, 'usr/local/bin/npm'))).toBe(false)
    expect(existsSync(join(image.root, 'app/node_modules/typescript'))).toBe(false)
    const modules = join(image.root, 'app/node_modules')
    const binaries = execFileSync('find', [modules, '-name', '*.node'], { encoding: 'utf8' })
      .trim()
      .split('\n')
    expect(binaries.filter((path) => !path.includes('linux'))).toEqual([])
    const [kibibytes = ''] = execFileSync('du', ['-sk', modules], { encoding: 'utf8' }).split('\t')
    expect(Number(kibibytes)).toBeLessThan(120_000)
  })

  it('stops cleanly at its stop signal', async () => {
    expect(image.stopSignal).toBe('SIGTERM')
    const ended = child === undefined ? undefined : once(child, 'exit')
    child?.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })
})
