import { Type, type Static } from 'typebox'
import { documented } from './documented.js'
import { strand, publicKey, first, second, signature, treeHead } from './example-values.js'
import { AgentAddress, Hash, PublicKey, Seq } from './primitives.js'

const Size = Type.Integer({ minimum: 1, description: 'Records including genesis' })
const Note = Type.String({ description: 'C2SP signed note over the newer tree head' })
const Path = Type.Array(Hash, {
  description: 'The hashes of the proof (RFC 6962, 2.1.2); empty if both sizes are equal',
})

const loggedRecord = {
  h: `strand-record/v1\nstrand ${strand}\nkey ${publicKey}\nseq 2\nprev …\ntype sys/heads\nbody …\n`,
  sig: signature,
  salt: '3efb72787632fae323938940daa98ca8',
  body: `{"clocks":["0199c5b8f2a4-0000"],"heads":[["${first}",3,"${second}"]]}`,
}

/** RFC 6962 consistency proof between two sizes of one strand. */
export const ConsistencyProof = Type.Object({
  agent: AgentAddress,
  from: Size,
  to: Size,
  path: Path,
  from_root: Hash,
  to_root: Hash,
  checkpoint: Type.String({
    description: 'C2SP signed note over the newer tree head, signed with the current key',
  }),
})
export type ConsistencyProof = Static<typeof ConsistencyProof>
documented('ConsistencyProof', ConsistencyProof, {
  proof: {
    agent: 'sensors',
    from: 2,
    to: 3,
    path: [second],
    from_root: strand,
    to_root: first,
    checkpoint: treeHead,
  },
})

/** RFC 6962 consistency proof between two sizes of the server log. */
export const LogConsistency = Type.Object({
  from: Size,
  to: Size,
  path: Path,
  from_root: Hash,
  to_root: Hash,
  checkpoint: Note,
})
export type LogConsistency = Static<typeof LogConsistency>
documented('LogConsistency', LogConsistency, {
  proof: { from: 2, to: 3, path: [second], from_root: strand, to_root: first, checkpoint: treeHead },
})

/**
 * A head of a strand in the server log, with everything needed to verify it offline. It does not prove that
 * the log has no later head of the strand (docs/FORMAT.md, The server log).
 */
export const LoggedHeadProof = Type.Object({
  agent: AgentAddress,
  strand: Hash,
  size: Size,
  hash: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Hash of the last of these records' }),
  log: Type.Object({
    strand: Hash,
    public_key: PublicKey,
    seq: Seq,
    record: Type.Object(
      {
        h: Type.String({ description: 'The exact text of the header' }),
        sig: Type.String({ pattern: '^[0-9a-f]{128}$' }),
        salt: Type.String({ pattern: '^[0-9a-f]{32}$' }),
        body: Type.String({
          description: 'The exact text of `{"clocks":[…],"heads":[[strand,size,hash]…]}`',
        }),
      },
      {
        description:
          'The record of the log with the head, as in an export. It does not prove that the log has no later head',
      },
    ),
    tree_size: Size,
    root: Hash,
    path: Type.Array(Hash, { description: 'Sibling hashes from the record up' }),
    checkpoint: Type.String({ description: 'C2SP signed note over the tree of `tree_size` records' }),
  }),
})
export type LoggedHeadProof = Static<typeof LoggedHeadProof>
documented('LoggedHeadProof', LoggedHeadProof, {
  proof: {
    agent: 'sensors',
    strand: first,
    size: 3,
    hash: second,
    log: {
      strand,
      public_key: publicKey,
      seq: 2,
      record: loggedRecord,
      tree_size: 3,
      root: first,
      path: [strand],
      checkpoint: treeHead,
    },
  },
})
