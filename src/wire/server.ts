import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { UnixMs } from './primitives.js'

const Count = Type.Integer({ minimum: 0 })

/** Answer of GET /v1/server. */
export const ServerInfo = Type.Object({
  version: Type.String(),
  node: Type.String({ description: 'Version of Node.js' }),
  started_at_ms: UnixMs,
  read_only: Type.Boolean({ description: 'Whether writes are refused because the data disk is nearly full' }),
  serving: Type.Boolean({ description: 'Whether all shards serve' }),
  shards: Type.Array(
    Type.Object({
      agents: Count,
      records: Type.Integer({ minimum: 0, description: 'Records written since the shard thread started' }),
      deaths: Type.Integer({
        minimum: 0,
        description: 'Crashes of the shard thread, after each of which it was started again',
      }),
    }),
  ),
  features: Type.Object({
    auth: Type.Boolean(),
    mail: Type.Boolean(),
    oauth_google: Type.Boolean(),
    oauth_github: Type.Boolean(),
    passkeys: Type.Boolean(),
    postgres: Type.Boolean(),
    server_log: Type.Boolean(),
    tls: Type.Boolean(),
    console: Type.Boolean(),
  }),
  open_modes: Type.Array(Type.String(), {
    description: 'Open modes, each described by a sentence: sign-in without a password or a mailbox',
  }),
  license: Type.Union(
    [
      Type.Object({
        state: Type.Enum(['valid', 'expired', 'invalid', 'absent']),
        licensee: Type.Union([Type.String(), Type.Null()]),
        expires_at_ms: Type.Union([UnixMs, Type.Null()]),
        features: Type.Array(Type.String()),
        authority: Type.Union([Type.String(), Type.Null()], {
          description: 'The public key that verifies the license',
        }),
      }),
      Type.Null(),
    ],
    { description: 'Null while the auth add-on is off' },
  ),
  last_backup_copy_at_ms: Type.Union([UnixMs, Type.Null()], {
    description:
      'When the server last copied its stores for a backup since its start; null for never. strandfast backup reports ' +
      'whether that backup was checked and completed',
  }),
  cluster: Type.Union(
    [
      Type.Object({
        node: Type.String({ description: 'The name of the answering node' }),
        members: Type.Array(
          Type.Object({
            node: Type.String(),
            address: Type.String({ description: 'The address for clients, as the node reports it' }),
            version: Type.String({
              description: 'Version and digest of its build; empty if the node has not reported them yet',
            }),
            serves_since_ms: Type.Union([UnixMs, Type.Null()], {
              description: 'Since when the node owns a shard; null for a standby',
            }),
            owned_shards: Type.Array(Type.Integer({ minimum: 0 }), {
              description: 'Numbers of the shards that the node owns',
            }),
            held_shards: Type.Array(Type.Integer({ minimum: 0 }), {
              description: 'Numbers of the shards that the node owns, or of which it has an up-to-date copy',
            }),
            lag_secs: Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
              description:
                'How far the copies of the node were behind the logs at its last heartbeat; null if it owns all shards, or has not ' +
                'reported yet',
            }),
          }),
          { description: 'Live nodes, by name' },
        ),
        stopped: Type.Array(Type.Object({ node: Type.String(), address: Type.String() }), {
          description: 'Nodes that do not run, or were replaced, until their rows are removed',
        }),
        problems: Type.Array(Type.String(), {
          description: 'What this node and other live nodes lack, each described by a sentence',
        }),
        differences: Type.Array(Type.String(), {
          description: 'Settings that differ between nodes but must be equal, each described by a sentence',
        }),
        faults: Type.Array(Type.String(), {
          description:
            'Rows of the database that do not verify and are ignored by this node, each described by a sentence',
        }),
      }),
      Type.Null(),
    ],
    { description: 'Null on a server without a cluster' },
  ),
  settings: Type.Array(
    Type.Object({
      name: Type.String(),
      value: Type.Union([Type.String(), Type.Null()], {
        description: 'The value as given; null if it is not set, secret, or looks like a key',
      }),
      default: Type.String({ description: 'The default in words' }),
      is_secret: Type.Boolean(),
      is_set: Type.Boolean(),
    }),
  ),
})
export type ServerInfo = Static<typeof ServerInfo>
documented('ServerInfo', ServerInfo, {
  server: {
    version: '0.4.0',
    node: '22.12.0',
    started_at_ms: 1_760_000_000_000,
    read_only: false,
    serving: true,
    shards: [{ agents: 3, records: 1_200, deaths: 0 }],
    features: {
      auth: true,
      mail: false,
      oauth_google: false,
      oauth_github: false,
      passkeys: false,
      postgres: false,
      server_log: true,
      tls: false,
      console: true,
    },
    open_modes: [],
    license: {
      state: 'valid',
      licensee: 'Example Ltd',
      expires_at_ms: 1_790_000_000_000,
      features: ['auth'],
      authority: null,
    },
    last_backup_copy_at_ms: null,
    cluster: {
      node: 'a',
      members: [
        {
          node: 'a',
          address: 'https://a.example',
          version: '0.4.0+3f2a9c1b7d21',
          serves_since_ms: 1_760_000_000_000,
          owned_shards: [0, 3],
          held_shards: [0, 1, 3],
          lag_secs: 0.1,
        },
        {
          node: 'b',
          address: 'https://b.example',
          version: '0.4.0+3f2a9c1b7d21',
          serves_since_ms: 1_760_000_000_500,
          owned_shards: [1, 2],
          held_shards: [0, 1, 2, 3],
          lag_secs: 0.2,
        },
      ],
      stopped: [],
      problems: [],
      differences: [],
      faults: [],
    },
    settings: [
      { name: 'SERVICE_PORT', value: '8787', default: '8787', is_secret: false, is_set: true },
      {
        name: 'SERVICE_ROOT_API_KEY',
        value: null,
        default: 'generated at the first start',
        is_secret: true,
        is_set: true,
      },
    ],
  },
})
