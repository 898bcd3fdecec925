// What the processes of `tensorfx run` tell each other: JSON, a message a line, through a socket. The output of ranks goes this way too, since mpirun would mix up long lines.
import type { Socket } from 'node:net'
import { decode, integer, object, oneOf, string } from '../../protocol/decode.ts'
import type { Decoder } from '../../protocol/decode.ts'
import { isPlainObject } from '../../protocol/index.ts'
import { parseJson } from '../../protocol/jsonText.ts'
import { onLines } from './lines.ts'

/** A line that a rank has written to its output or its errors. */
export interface RankLine {
  readonly rank: number
  readonly kind: 'out' | 'err'
  readonly line: string
}

/** How a rank's process ended. */
export interface RankEnd {
  readonly rank: number
  readonly kind: 'end'
  /** The exit code, or 128 and the number of the signal. */
  readonly code: number
  readonly signal: string | null
  /** What V8 said at the end. */
  readonly crash: string | null
}

/** What the process beside a rank reports. */
export type RankMessage = RankLine | RankEnd

/** What the launcher asks for: that a signal goes to the rank. */
export interface SignalMessage {
  readonly signal: string
}

const RANK = integer(0)
const TEXT = string(2 ** 26)
const textOrNull: Decoder<string | null> = (value, place) => (value === null ? null : TEXT(value, place))
const RANK_LINE: Decoder<RankLine> = object({ rank: RANK, kind: oneOf(['out', 'err']), line: TEXT })
const RANK_END: Decoder<RankEnd> = object({ rank: RANK, kind: oneOf(['end']), code: integer(), signal: textOrNull, crash: textOrNull })

export const RANK_MESSAGE: Decoder<RankMessage> = (value, place) =>
  isPlainObject(value) && value['kind'] === 'end' ? RANK_END(value, place) : RANK_LINE(value, place)

export const SIGNAL_MESSAGE: Decoder<SignalMessage> = object({ signal: TEXT })

/** Sends a message. */
export const send = (socket: Socket, message: RankMessage | SignalMessage): void => void socket.write(`${JSON.stringify(message)}\n`)

/** Calls `receive` for each message. */
export function onMessages<T>(socket: Socket, decoder: Decoder<T>, receive: (message: T) => void): void {
  onLines(socket, (line) => receive(decode('tensorfx run', decoder, parseJson('tensorfx run', 'a message', line))))
}
