// What the processes of `tensorfx run` tell each other: JSON, a message a line, through a socket. The output of ranks goes this way too, since mpirun would mix up long lines.
import type { Socket } from 'node:net'
import { decode, integer, object, oneOf, optional, string } from '../../protocol/decode.ts'
import type { Decoder } from '../../protocol/decode.ts'
import { parseJson } from '../../protocol/jsonText.ts'
import { LineSplitter } from './lines.ts'

const TEXT = string(2 ** 26)

/** What the process beside a rank reports: a line of output, or the rank's end. */
export interface RankMessage {
  readonly rank: number
  readonly kind: 'out' | 'err' | 'end'
  readonly line?: string | undefined
  /** Of an end: the exit code, or 128 and the number of the signal. */
  readonly code?: number | undefined
  readonly signal?: string | undefined
  /** What V8 said at the end. */
  readonly crash?: string | undefined
}

export const RANK_MESSAGE: Decoder<RankMessage> = object({
  rank: integer(0),
  kind: oneOf(['out', 'err', 'end']),
  line: optional(TEXT),
  code: optional(integer()),
  signal: optional(TEXT),
  crash: optional(TEXT),
})

/** What the launcher asks for: that a signal goes to the rank. */
export const SIGNAL_MESSAGE: Decoder<{ readonly signal: string }> = object({ signal: TEXT })

/** Sends a message. */
export const send = (socket: Socket, message: object): void => void socket.write(`${JSON.stringify(message)}\n`)

/** Calls `receive` for each message. */
export function onMessages<T>(socket: Socket, decoder: Decoder<T>, receive: (message: T) => void): void {
  const lines = new LineSplitter((line) => receive(decode('tensorfx run', decoder, parseJson('tensorfx run', 'a message', line))))
  socket.on('data', (chunk: Uint8Array) => lines.add(chunk))
}
