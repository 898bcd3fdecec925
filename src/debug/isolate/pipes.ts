// How queries and answers travel between a program and its child process: through the child's standard input and output, not Node's channel for messages, where bytes
// that cannot be decoded end the parent. Queries hold tensors, so they are serialized; answers are lines of JSON between whatever else the child prints.
import { joinBytes } from '../../protocol/joinBytes.ts'
import type { Answer, Progress, Query } from './protocol.ts'

/** The functions of node:v8 that queries travel with. */
export interface Serializer {
  serialize(value: unknown): Uint8Array
  deserialize(bytes: Uint8Array): unknown
}

const HEADER_BYTES = 4

/** A query as bytes: their number, then the serialized query. */
export function queryBytes(serializer: Serializer, query: Query): Uint8Array {
  const body = serializer.serialize(query)
  const frame = new Uint8Array(HEADER_BYTES + body.length)
  new DataView(frame.buffer).setUint32(0, body.length)
  frame.set(body, HEADER_BYTES)
  return frame
}

/** A function that takes the bytes as they arrive, in any pieces, and calls `onQuery` for each query. Only the parent writes to it. */
export function queryReader(serializer: Serializer, onQuery: (query: Query) => void): (bytes: Uint8Array) => void {
  let pieces: Uint8Array[] = []
  let length = 0
  let wanted = HEADER_BYTES
  let isBody = false
  return (bytes) => {
    pieces.push(bytes)
    length += bytes.length
    while (length >= wanted) {
      const all = joinBytes(pieces)
      const part = all.slice(0, wanted)
      pieces = [all.subarray(wanted)]
      length -= wanted
      if (isBody) onQuery(serializer.deserialize(part) as Query)
      wanted = isBody ? HEADER_BYTES : new DataView(part.buffer).getUint32(0)
      isBody = !isBody
    }
  }
}

const MARK = 'tensorfx-answer '

/** The longest line that is kept; answers are far shorter. */
const LONGEST = 2 ** 20

/** What a child says first, when it can be asked: the answer to no query. */
export const READY: Answer = { id: -1, outcome: { status: 'passes', message: 'ready' } }

/** An answer as a line of its own, whatever was printed before it. */
export const answerLine = (answer: Answer): string => `\n${MARK}${JSON.stringify(answer)}\n`

/** What a child says before it answers, as such a line. */
export const progressLine = (progress: Progress): string => `\n${MARK}${JSON.stringify(progress)}\n`

/** A function that takes the text that a child prints, in any pieces, and calls `onMessage` for each line that is marked as an answer. The rest is ignored. */
export function answerReader(onMessage: (message: unknown) => void): (text: string) => void {
  let rest = ''
  return (text) => {
    const lines = (rest + text).split('\n')
    const last = lines.pop() ?? ''
    // A line that is longer is no answer, however it goes on.
    rest = last.length > LONGEST ? ' ' : last
    for (const line of lines) {
      if (!line.startsWith(MARK)) continue
      let message: unknown
      try {
        message = JSON.parse(line.slice(MARK.length))
      } catch {
        continue
      }
      onMessage(message)
    }
  }
}
