import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/settings/config.js'
import type { Environment } from '../../../src/settings/setting.js'
import { validityWarnings } from '../../../src/settings/tls-files.js'

const fixture = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../support/http/tls', name), 'utf8')
const [cert, key, otherCert, otherKey] = ['cert.pem', 'key.pem', 'other-cert.pem', 'other-key.pem'].map(
  fixture,
)
const encrypted = (type: 'pkcs8' | 'sec1') =>
  createPrivateKey(otherKey ?? '').export({ type, format: 'pem', cipher: 'aes-256-cbc', passphrase: 'words' })
const der = new X509Certificate(cert ?? '').raw
const mark = '\uFEFF'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tls-files-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function file(content: string | Buffer = ''): string {
  const path = join(folder, `${files++}.pem`)
  writeFileSync(path, content)
  return path
}

/** The faults of an environment, each as a setting and what was given. */
function faults(env: Environment): string[] {
  const reading = readConfig(env)
  return reading.ok ? [] : reading.faults.map(({ name, given }) => `${name}: ${given}`)
}

function faultsOf(certText: string | Buffer = '', keyText: string | Buffer = ''): string[] {
  const [certFile, keyFile] = [file(certText), file(keyText)]
  return faults({ SERVICE_TLS_CERT_FILE: certFile, SERVICE_TLS_KEY_FILE: keyFile }).map((fault) =>
    fault.replaceAll(certFile, 'CERT').replaceAll(keyFile, 'KEY'),
  )
}

describe('the TLS files of a server', () => {
  it.each([
    ['a pair', cert, key],
    ['a pair with byte order marks', `${mark}${cert}`, `${mark}${key}`],
    ['a chain', `${otherCert}${cert}`, otherKey],
    ['one file for both', `${otherKey}${otherCert}`, `${otherCert}${otherKey}`],
    ['lines that end as on Windows', cert?.replaceAll('\n', '\r\n'), key?.replaceAll('\n', '\r\n')],
  ])('are accepted: %s', (_name, certText, keyText) => expect(faultsOf(certText, keyText)).toEqual([]))

  const certFault = (text: string) => `SERVICE_TLS_CERT_FILE: "CERT", ${text}`
  const keyFault = (text: string) => `SERVICE_TLS_KEY_FILE: "KEY", ${text}`
  it.each([
    ['empty', '', '\n', [certFault('an empty file'), keyFault('an empty file')]],
    ['DER', der, key, [certFault('a file that is not PEM')]],
    ['junk', cert, 'junk', [keyFault('a file that is not PEM')]],
    ['exchanged', key, cert, [certFault('a private key'), keyFault('a certificate')]],
    [
      'another kind of PEM',
      '-----BEGIN X-----\n-----END X-----',
      '-----BEGIN X-----\n-----END X-----',
      [certFault('a file without a certificate'), keyFault('a file without a private key')],
    ],
    [
      'cut off',
      `${cert}${cert?.slice(0, 200)}`,
      key?.slice(0, 60),
      [
        certFault('a file whose certificate 2 of 2 is cut off or invalid'),
        keyFault('a file whose private key is cut off or invalid'),
      ],
    ],
    [
      'changed',
      otherCert?.replace(/\n.{40}/, `\n${'A'.repeat(40)}`),
      otherKey,
      [certFault('a file whose certificate 1 of 1 is cut off or invalid')],
    ],
    [
      'encrypted',
      otherCert,
      encrypted('pkcs8'),
      [keyFault('an encrypted private key; openssl pkey -in FILE -out NEW decrypts it')],
    ],
    [
      'encrypted in the older form',
      otherCert,
      encrypted('sec1'),
      [keyFault('an encrypted private key; openssl pkey -in FILE -out NEW decrypts it')],
    ],
    ['no pair', cert, otherKey, [keyFault('not the key of the certificate in CERT')]],
    [
      'a chain in the wrong order',
      `${cert}${otherCert}`,
      otherKey,
      [certFault('a chain whose certificate 2, that of the key, must be the first')],
    ],
  ])('are refused with what is wrong: %s', (...[, certText, keyText, expected]) =>
    expect(faultsOf(certText, keyText)).toEqual(expected),
  )

  it('are refused if one cannot be read', () => {
    const [fault] = faults({ SERVICE_TLS_CERT_FILE: folder, SERVICE_TLS_KEY_FILE: file(key) })
    expect(fault).toContain('which cannot be read: EISDIR')
  })

  it('cause a warning before and after the time of a certificate', () => {
    const path = file(`${otherCert}${cert}`)
    const warnings = (time: string) => validityWarnings('NAME', path, Date.parse(time))
    expect(warnings('2100-01-01')).toEqual([])
    expect(warnings('2020-01-01')).toEqual([
      expect.stringContaining(`NAME: certificate 1 of 2 in ${path} is not valid before 2026-11-29T`),
      expect.stringContaining(`NAME: certificate 2 of 2 in ${path} is not valid before 2026-11-23T`),
    ])
    expect(warnings('2127-01-01')).toEqual([
      expect.stringContaining(`NAME: certificate 1 of 2 in ${path} expired on 2126-11-05T`),
      expect.stringContaining(`NAME: certificate 2 of 2 in ${path} expired on 2126-10-30T`),
    ])
  })
})

describe.each([
  ['SERVICE_INGEST_POSTGRES_URL', 'postgres://writer:secret@db:5432/facts'],
  ['SERVICE_INGEST_POSTGRES_URL', 'postgres://writer:secret@one:5432,two:5432/facts'],
  ['SERVICE_CLUSTER_URL', 'postgres://writer:secret@one:5432,two:5432/facts'],
])('the TLS files in %s, such as %s', (name, url) => {
  const urlFaults = (parameters: Record<string, string>) =>
    faults({
      [name]: `${url}?${new URLSearchParams({ sslmode: 'verify-full', ...parameters }).toString()}`,
      SERVICE_MASTER_SEED: 'ab'.repeat(32),
      SERVICE_ROOT_API_KEY: `sk_root_${'ab'.repeat(32)}`,
    })

  it('are accepted: certificates of authorities, and a pair', () => {
    expect(urlFaults({})).toEqual([])
    expect(urlFaults({ sslrootcert: file(`${mark}${cert}${otherCert}`) })).toEqual([])
    expect(urlFaults({ sslcert: file(otherCert), sslkey: file(otherKey) })).toEqual([])
  })

  it('are refused with what is wrong', () => {
    const [empty, missing] = [file(''), join(folder, 'missing.pem')]
    expect(urlFaults({ sslrootcert: empty })).toEqual([`${name}: sslrootcert "${empty}", an empty file`])
    expect(urlFaults({ sslrootcert: missing })).toEqual([
      expect.stringContaining(`${name}: sslrootcert "${missing}", which cannot be read: ENOENT`),
    ])
    const [certFile, keyFile] = [file(cert), file(otherKey)]
    expect(urlFaults({ sslcert: certFile, sslkey: keyFile })).toEqual([
      `${name}: sslkey "${keyFile}", not the key of the certificate in ${certFile}`,
    ])
  })
})
