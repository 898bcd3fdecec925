// How a rank ended, and what a user reads of it: the first line names the rank and the cause.
import { boolean, integer, object, string } from '../../protocol/decode.ts'
import type { Decoder } from '../../protocol/decode.ts'
import { valueText } from '../../protocol/index.ts'
import { DistributedError } from '../errors.ts'

/** A rank that ended before its program did. */
export interface RankFailure {
  readonly rank: number
  readonly size: number
  /** What happened, as the user reads it. */
  readonly cause: string
  /** Where: lines of a stack. May be empty. */
  readonly stack: string
  /** The exit code of the rank, which becomes that of the job. */
  readonly code: number
  /** Whether it only ended because another rank did. */
  readonly isEcho: boolean
}

const MAX_TEXT = 2 ** 20

/** Reads the failure of another process. */
export const RANK_FAILURE: Decoder<RankFailure> = object({
  rank: integer(0),
  size: integer(0),
  cause: string(MAX_TEXT),
  stack: string(MAX_TEXT),
  code: integer(),
  isEcho: boolean,
})

/** `rank 1 of 4`. */
export const rankName = ({ rank, size }: Pick<RankFailure, 'rank' | 'size'>): string => `rank ${rank} of ${size}`

/** All that is known of a failure. */
export const failureText = (failure: RankFailure): string =>
  `${rankName(failure)}: ${failure.cause}${failure.stack === '' ? '' : `\n${failure.stack}`}`

/** A failure in one line, for ranks that end after another one. */
export const failureLine = (failure: RankFailure): string => `${rankName(failure)}: ${failure.cause.split('\n')[0] ?? ''}`

/** The lines of a stack that are frames: what comes before them repeats the message. */
function framesOf(stack: string): string {
  const at = stack.search(/^[ \t]+at /m)
  return at < 0 ? '' : stack.slice(at)
}

/** Where a syntax error is, as Node says before a stack or where nothing catches the error: the file with its line, that line, and a mark below it. Empty if that is not said. */
export const placeOf = (text: string): string => /^(?:\S.*:\d+\n[^]*?)(?=^SyntaxError\b)/m.exec(text)?.[0].trimEnd() ?? ''

const errorText = ({ name, message }: Error): string => (message === '' ? name : `${name}: ${message}`)

/** The stack of an error, and those of its causes and of the errors that it stands for. */
function stacksOf(error: Error): string {
  const { stack = '' } = error
  const parts = [error instanceof SyntaxError ? placeOf(stack) : '', framesOf(stack)]
  const seen = new Set<unknown>([error])
  const add = (title: string, inner: unknown): void => {
    if (seen.has(inner)) return
    seen.add(inner)
    parts.push(`${title}: ${inner instanceof Error ? `${errorText(inner)}\n${framesOf(inner.stack ?? '')}` : thrownText(inner)}`)
    if (inner instanceof Error) addInner(inner)
  }
  const addInner = (outer: Error): void => {
    if (outer.cause !== undefined && outer.cause !== null) add('Caused by', outer.cause)
    if (outer instanceof AggregateError) for (const one of outer.errors) add('One of its errors', one)
  }
  addInner(error)
  return parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== '')
    .join('\n')
}

/** What a program threw that is not an error, with its properties where that is possible. */
function thrownText(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value !== 'object' || value === null) return valueText(value)
  const util = globalThis.process?.getBuiltinModule?.('node:util')
  return util === undefined ? valueText(value) : util.inspect(value, { depth: 2, breakLength: Infinity })
}

/** The failure of a rank whose program threw. Reading what was thrown may throw itself. */
export function errorFailure(rank: number, size: number, error: unknown): RankFailure {
  const failure = { rank, size, stack: '', code: 1, isEcho: false }
  try {
    if (!(error instanceof Error)) return { ...failure, cause: `threw ${thrownText(error)}` }
    const isEcho = error instanceof DistributedError && error.endedRank !== null
    return { ...failure, cause: errorText(error), stack: stacksOf(error), isEcho }
  } catch {
    return { ...failure, cause: 'threw something that throws when it is read' }
  }
}

/** Node's exit code for a program that still waits when nothing is left that could settle what it waits for. */
export const UNSETTLED = 13

/** The failure of a rank that exited. `stack` is that of the exit, which shows who called `process.exit`. */
export function exitFailure(rank: number, size: number, code: number, stack: string): RankFailure {
  const [, ...frames] = framesOf(stack).split(/^\s+at process\.(?:reallyE|e)xit .*$/m)
  const called = frames.join('\n').replace(/^\n+/, '').trimEnd()
  const first = /^\s+at (.*)$/m.exec(called)?.[1]
  const ended = code === UNSETTLED ? 'ended, since an await never settled' : `ended with exit code ${code}`
  return { rank, size, cause: first === undefined ? ended : `process.exit(${code}), called at ${first}`, stack: called, code, isEcho: false }
}

/** What is known of signals that a program does not send to itself. */
const SIGNAL_HINTS: Readonly<Record<string, string>> = {
  SIGKILL: ' It is what the kernel sends when memory runs out (see dmesg), and what kill -9 sends.',
  SIGSEGV: ' The process read memory that is not its own: look at native code, such as the MPI library.',
}

/** The failure of a process that a signal ended; `number` is the signal's. */
export const signalFailure = (rank: number, size: number, signal: string, number: number): RankFailure => ({
  rank,
  size,
  cause: `killed by signal ${signal}.${SIGNAL_HINTS[signal] ?? ''}`,
  stack: '',
  code: 128 + number,
  isEcho: false,
})
