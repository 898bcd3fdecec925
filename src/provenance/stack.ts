// Stack traces of the user's program. Capturing one is cheap, because the engine only records it; it is formatted when it is read.
import { DEEP, host } from '../errors/index.ts'
import { markOwn, sourceLine } from './codeFrame.ts'
import { parseStack } from './frame.ts'
import type { Frame } from './frame.ts'

/** The number of frames to record: enough to reach the user's innermost frame below all layers of tensorfx. */
const LIMIT = 24

/** Sets how many frames new errors record, and returns the previous limit for {@link restoreStacks}. */
function setLimit(limit: number): number | undefined {
  const before = host.stackTraceLimit
  host.stackTraceLimit = limit
  return before
}

/** Restores the limit that {@link deepenStacks} returned. */
export function restoreStacks(before: number | undefined): void {
  if (before === undefined) delete host.stackTraceLimit
  else host.stackTraceLimit = before
}

/** Lets errors record stack traces that reach generated code, until {@link restoreStacks} is called with the returned value. */
export function deepenStacks(): number | undefined {
  const before = host.stackTraceLimit
  // Other engines have no limit, and a higher limit that the user set stays.
  if (host.captureStackTrace !== undefined && before !== undefined && before < DEEP) host.stackTraceLimit = DEEP
  return before
}

/** A captured stack trace. Its frames and text are computed on first use. */
export class CapturedStack {
  #holder: { stack?: string } | null
  #frames: readonly Frame[] | null = null

  constructor(holder: { stack?: string }) {
    this.#holder = holder
  }

  /** A stack trace that was recorded elsewhere. The innermost frame is last. The files that it names are never opened. */
  static of(frames: readonly Frame[]): CapturedStack {
    const stack = new CapturedStack({})
    stack.#frames = frames
    return stack
  }

  /** The user's frames, innermost last, without those of tensorfx and of the host. */
  get frames(): readonly Frame[] {
    if (this.#frames === null) {
      this.#frames = parseStack(this.#holder?.stack ?? '')
      markOwn(this.#frames)
      // The engine's record keeps the functions on the stack alive, and what they close over.
      this.#holder = null
    }
    return this.#frames
  }

  /** The innermost frame of the user's program; undefined if there is none. */
  get userFrame(): Frame | undefined {
    return this.frames.at(-1)
  }

  /** PyTorch's form: `  File "model.ts", line 3, in forward` and the source line below, innermost last. */
  toString(): string {
    return this.frames
      .map((f) => {
        const code = sourceLine(f)
        return `  File "${f.file}", line ${f.line}, in ${f.fn}\n${code === null ? '' : `    ${code.trim()}\n`}`
      })
      .join('')
  }

  toJSON(): readonly Frame[] {
    return this.frames
  }
}

/** Captures the stack of the caller, without the frames above and including `skipAfter`, of `limit` frames. Takes one to three microseconds. */
export function captureStack(skipAfter?: (...args: never[]) => unknown, limit: number = LIMIT): CapturedStack {
  if (host.captureStackTrace === undefined) return new CapturedStack(new Error('stack'))
  const before = setLimit(limit)
  const holder: { stack?: string } = {}
  host.captureStackTrace(holder, skipAfter ?? captureStack)
  restoreStacks(before)
  return new CapturedStack(holder)
}
