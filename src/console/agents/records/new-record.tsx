import type { ServiceClient } from '../../../client/index.js'
import { utf8 } from '../../../proof/hex.js'
import { readJson } from '../../../strand/json.js'
import { Dialog } from '../../parts/dialog.js'
import { Field, Form, Problem } from '../../parts/field.js'
import { countText } from '../../parts/format.js'
import { isObject, valueOfJson } from '../../parts/json.js'
import { useChange } from '../../parts/load.js'
import type { RecordRow } from '../../parts/records/record-row.js'
import { Button } from '../../parts/texts.js'

/** The server's depth limit of a body. */
const DEPTH_MAX = 64
const TYPE_CHARS_MAX = 64

/** A record as typed. */
export interface RecordDraft {
  type: string
  text: string
}

export function NewRecord(props: {
  service: ServiceClient
  agent: string
  /** Kept by the page, so that a dialog that was closed by mistake loses nothing. */
  draft: RecordDraft
  setDraft: (draft: RecordDraft) => void
  /** A record whose body and type can be copied into the form. */
  model: RecordRow | undefined
  written: (seq: number) => void
  close: () => void
}) {
  const { service, agent, draft, setDraft, model, written, close } = props
  const { isBusy, problem, run } = useChange()
  const write = async (): Promise<void> => {
    const read = bodyOf(draft.text)
    if ('fault' in read) throw new Error(read.fault)
    const { seq } = await service.agent(agent).write(read.body, { type: draft.type.trim() })
    written(seq)
  }
  return (
    <Dialog title="New record" class="dialog" close={close}>
      <h2>New record</h2>
      <Form submit={() => run(write)}>
        <Field
          name="Type"
          maxLength={TYPE_CHARS_MAX}
          required
          value={draft.type}
          set={(type) => setDraft({ ...draft, type })}
        />
        <label class="field">
          Body, a JSON object
          <textarea
            rows={12}
            spellcheck={false}
            value={draft.text}
            onInput={(event) => setDraft({ ...draft, text: event.currentTarget.value })}
          />
        </label>
        {model?.body !== undefined && (
          <div class="buttons">
            <Button
              text={`Copy record ${countText(model.seq)}`}
              class="quiet"
              onClick={() => setDraft({ type: model.type, text: indented(model.body ?? '') })}
            />
          </div>
        )}
        <p class="muted">It is appended to the strand, signed, and cannot be edited afterwards.</p>
        <Problem text={problem} />
        <div class="buttons">
          <Button text="Write record" type="submit" class="primary" disabled={isBusy} />
          <Button text="Cancel" onClick={close} />
        </div>
      </Form>
    </Dialog>
  )
}

/** Parses a body as strictly as the server, before numbers are rounded. */
function bodyOf(text: string): { body: Record<string, unknown> } | { fault: string } {
  const read = readJson(utf8(text), DEPTH_MAX)
  if ('code' in read) return { fault: read.detail }
  return isObject(read.value) ? { body: read.value } : { fault: 'Expected a JSON object' }
}

function indented(body: string): string {
  return JSON.stringify(valueOfJson(body), null, 2)
}
