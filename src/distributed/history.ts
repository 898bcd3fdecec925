// The last collectives of each rank, where other ranks can read them: at a mismatch or a hang they tell which one was the first that differed. Kept with debug level 'detail' only.
import { captureStack } from '../provenance/index.ts'
import { decode, integer, object, string } from '../protocol/decode.ts'
import type { Decoded } from '../protocol/decode.ts'
import type { Backend, SlotStore } from './backend.ts'

/** How many collectives of each rank are kept. */
export const KEPT = 100
/** Bytes of the longest record; its place in the program is cut off first. */
export const SLOT_BYTES = 512

const RECORD = object({
  /** Counts all collectives of the rank. */
  count: integer(1),
  group: string(),
  /** Its number in the group; 0 for messages. */
  sequence: integer(0),
  what: string(),
  /** The line of the program; empty if it is not known. */
  at: string(),
})
type CollectiveRecord = Decoded<typeof RECORD>

/** A group whose ranks are compared. */
interface Compared {
  readonly name: string
  readonly ranks: readonly number[]
}

/** Records of this rank and of the others. */
export class History {
  readonly #store: SlotStore
  #count = 0

  constructor(store: SlotStore) {
    this.#store = store
  }

  /** Records a collective that this rank is about to start. */
  add(group: string, sequence: number, what: string): void {
    const frame = captureStack().frames.at(-1)
    const at = frame === undefined ? '' : `${frame.file}:${frame.line}:${frame.column}`
    const count = ++this.#count
    const record = { count, group, sequence, what, at }
    const text = JSON.stringify(record)
    // File names are cut at the front, where they say least.
    const room = SLOT_BYTES - (text.length - at.length)
    this.#store.write(
      count % KEPT,
      text.length <= SLOT_BYTES ? text : JSON.stringify({ ...record, what: what.slice(0, 200), at: at.slice(-Math.max(1, room)) }),
    )
  }

  /** The first collective of a group that its ranks did not call alike, with what each of them called and where; empty if they have called the same. */
  difference({ name, ranks }: Compared): string {
    const histories = ranks.map((rank) => this.#read(rank))
    const own = histories.map(
      (records) => new Map(records.filter((record) => record.group === name && record.sequence > 0).map((record) => [record.sequence, record])),
    )
    // What has left a rank's records cannot be compared.
    const start = Math.max(
      1,
      ...own.map((records, i) => (records.size === 0 || (histories[i]?.length ?? 0) < KEPT ? 1 : Math.min(...records.keys()))),
    )
    const end = Math.max(0, ...own.flatMap((records) => [...records.keys()]))
    for (let sequence = start; sequence <= end; sequence++) {
      const calls = own.map((records) => records.get(sequence))
      if (calls.every((call) => call !== undefined && call.what === calls[0]?.what)) continue
      const lines = calls.map((call, i) => `  rank ${ranks[i]}: ${call === undefined ? lastText(histories[i] ?? []) : callText(call)}`)
      return [`The first collective that differs is number ${sequence} of group '${name}':`, ...lines].join('\n')
    }
    return ''
  }

  /** A rank's records, the oldest first. */
  #read(rank: number): readonly CollectiveRecord[] {
    const records = this.#store.read(rank).flatMap((text) => {
      try {
        const value: unknown = JSON.parse(text)
        return [decode('TENSORFX_DISTRIBUTED_DEBUG', RECORD, value)]
      } catch {
        // A record that is being written.
        return []
      }
    })
    return records.toSorted((a, b) => a.count - b.count)
  }
}

/** The history of this rank's collectives; null if other ranks could not read it. */
export function openHistory(backend: Backend): History | null {
  const store = backend.openSlots?.(KEPT, SLOT_BYTES) ?? null
  return store === null ? null : new History(store)
}

const placeText = ({ at }: CollectiveRecord): string => (at === '' ? '' : ` at ${at}`)

const callText = (record: CollectiveRecord): string => `${record.what}${placeText(record)}`

function lastText(records: readonly CollectiveRecord[]): string {
  const last = records.at(-1)
  if (last === undefined) return 'has not called it, nor any other'
  const number = last.sequence === 0 ? 'a message' : `number ${last.sequence}`
  return `has not called it; its last is ${last.what}, ${number} of group '${last.group}',${placeText(last)}`
}
