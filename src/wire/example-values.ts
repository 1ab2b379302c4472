/*
 * Values that the examples of several schemas share, so that all refer to one strand and one user. No token
 * is real.
 */

export const strand = '3fb907e768db9ff74f68b03b8af5a3412eaf44e15f5de1e929e276c5d29cdd19'
export const publicKey = '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8'
export const first = 'b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78'
export const second = '4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce'
export const signature =
  '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
  '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00'

export const reading = { sensor: 'boiler-2', celsius: 71.4, ok: true }

/** Two records for an ingest: the plain JSON bodies. */
export const readings = [reading, { ...reading, celsius: 72.1 }]

export const headExample = {
  agent_id: 'sensors',
  chain_head: second,
  hash: `sha256:${second}`,
  seq: 2,
  record_count: 2,
  timestamp_hlc: '0199c5b8f2a4-0000',
  timestamp_ms: 1_759_958_856_356,
  signature,
}

export const recordExample = {
  record_id: second,
  content_hash: second,
  parent_hash: first,
  seq: 2,
  timestamp_hlc: '0199c5b8f2a4-0000',
  timestamp_ms: 1_759_958_856_356,
  type: 'reading',
  payload: reading,
  signature,
  public_key: publicKey,
  deleted: false,
  erased: false,
}

export const treeHead = `strandfast/${strand}\n3\ntdQEXD9Gb6kf4sxqvnkjKhpXzfEE96JucW4KHieJ33g=\n\n— strandfast/${strand} …\n`

export const ada = { user_id: 'usr_5f0c2b7d9e1a4c3388d6b1f2a4097e5c', email: 'ada@example.org' }
export const adaTokens = {
  token: 'eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.EXAMPLE.EXAMPLE',
  refresh_token: 'EXAMPLEaB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3',
  token_type: 'Bearer',
  expires_in: 3_600,
}
export const deviceToken = 'EXAMPLE' + 'd3v1c3'.repeat(14) + 'end'
export const oneTimeToken = 'EXAMPLEq3v5w7x9y1z3a5b7c9d1e3f5g7h9j1k3l5m7'
