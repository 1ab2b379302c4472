import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isFileSystemError } from '../base/durable-file.js'
import { hostUrls } from '../base/host-urls.js'
import { readPem } from '../base/pem.js'
import type { SettingFault } from './setting.js'

/** Paths of a PEM certificate chain and of its private key. */
export interface TlsPair {
  certFile: string
  keyFile: string
}

/** What a PEM file contains, or what is wrong with it: `an empty file`. */
type PemReading<Content> = { ok: true; content: Content } | { ok: false; fault: string }

/**
 * What is wrong with a certificate and its private key. Node listens even with files that are empty, and
 * fails every handshake.
 */
export function pairFaults({ certFile, keyFile }: TlsPair): { of: 'cert' | 'key'; fault: string }[] {
  const certificates = readCertificates(certFile)
  const key = readKey(keyFile)
  if (!certificates.ok || !key.ok) {
    return [
      ...(certificates.ok ? [] : [{ of: 'cert' as const, fault: certificates.fault }]),
      ...(key.ok ? [] : [{ of: 'key' as const, fault: key.fault }]),
    ]
  }
  const position = certificates.content.findIndex((one) => one.checkPrivateKey(key.content)) + 1
  if (position === 1) return []
  if (position === 0) return [{ of: 'key', fault: `not the key of the certificate in ${certFile}` }]
  return [{ of: 'cert', fault: `a chain whose certificate ${position}, that of the key, must be the first` }]
}

/** Warnings about certificates that are not valid at this time, as sentences without a full stop. */
export function validityWarnings(setting: string, certFile: string, nowMs: number): string[] {
  const reading = readCertificates(certFile)
  if (!reading.ok) return []
  return reading.content.flatMap((certificate, index) => {
    const subject = `${setting}: certificate ${index + 1} of ${reading.content.length} in ${certFile}`
    const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
    if (nowMs > to)
      return [`${subject} expired on ${new Date(to).toISOString()}, so clients refuse to connect`]
    if (nowMs >= from) return []
    return [`${subject} is not valid before ${new Date(from).toISOString()}, so clients refuse to connect`]
  })
}

/**
 * What is wrong with the TLS files that the URL of a PostgreSQL database names. The driver would accept an
 * empty or invalid `sslrootcert`, and then trust the authorities that Node trusts, or none.
 */
export function postgresFileFaults(setting: string, url: string | undefined): SettingFault[] {
  const [first = url] = hostUrls(url ?? '')
  if (first === undefined || !URL.canParse(first)) return []
  // The driver uses the last of repeated parameters.
  const parameters = new Map(new URL(first).searchParams)
  const faults: SettingFault[] = []
  const addFault = (parameter: string, path: string, fault: string) => {
    const given = `${parameter} ${JSON.stringify(path)}, ${fault}`
    faults.push({ name: setting, given, allowed: `the path of a readable PEM file in ${parameter}` })
  }
  const [rootFile = '', certFile = '', keyFile = ''] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) =>
    parameters.get(name),
  )
  const root = rootFile === '' ? undefined : readCertificates(rootFile)
  if (root?.ok === false) addFault('sslrootcert', rootFile, root.fault)
  if (certFile === '' || keyFile === '') return faults
  for (const { of, fault } of pairFaults({ certFile, keyFile }))
    addFault(`ssl${of}`, of === 'cert' ? certFile : keyFile, fault)
  return faults
}

const certificateBlock =
  /-----BEGIN (?<label>(?:X509 |TRUSTED )?CERTIFICATE)-----[^-]*-----END \k<label>-----/g
const certificateStart = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g
const keyStart = /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/
const encryptedKey = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m

function readCertificates(path: string): PemReading<X509Certificate[]> {
  const reading = readBlocks(path)
  if (!reading.ok) return reading
  const { content: text } = reading
  const starts = text.match(certificateStart) ?? []
  if (starts.length === 0)
    return { ok: false, fault: keyStart.test(text) ? 'a private key' : 'a file without a certificate' }
  const blocks = text.match(certificateBlock) ?? []
  const invalid = (position: number): PemReading<X509Certificate[]> => ({
    ok: false,
    fault: `a file whose certificate ${position} of ${starts.length} is cut off or invalid`,
  })
  const certificates: X509Certificate[] = []
  for (const block of blocks) {
    try {
      certificates.push(new X509Certificate(block))
    } catch {
      return invalid(certificates.length + 1)
    }
  }
  return blocks.length === starts.length ? { ok: true, content: certificates } : invalid(blocks.length + 1)
}

function readKey(path: string): PemReading<KeyObject> {
  const reading = readBlocks(path)
  if (!reading.ok) return reading
  const { content: text } = reading
  if (encryptedKey.test(text))
    return { ok: false, fault: 'an encrypted private key; openssl pkey -in FILE -out NEW decrypts it' }
  if (!keyStart.test(text)) {
    const found = text.search(certificateStart) < 0 ? 'a file without a private key' : 'a certificate'
    return { ok: false, fault: found }
  }
  try {
    return { ok: true, content: createPrivateKey(text) }
  } catch {
    return { ok: false, fault: 'a file whose private key is cut off or invalid' }
  }
}

/** Reads a file that has at least one PEM block. */
function readBlocks(path: string): PemReading<string> {
  try {
    const { text } = readPem(path)
    if (text.trim() === '') return { ok: false, fault: 'an empty file' }
    if (!text.includes('-----BEGIN ')) return { ok: false, fault: 'a file that is not PEM' }
    return { ok: true, content: text }
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return { ok: false, fault: `which cannot be read: ${error.message}` }
  }
}
