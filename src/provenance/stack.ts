// Where in the user's program something happened. Capturing is cheap (the engine records, nobody formats); text is made when somebody asks.
import { sourceLine } from './codeFrame.ts'

/** One frame of the user's program. */
export interface Frame {
  /** Path or URL of the file. */
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  /** Name of the function, '<anonymous>' without one. */
  readonly fn: string
}

const LIMIT = 24

/** The folder of tensorfx itself (src/ or dist/): its frames are not the user's. */
const OWN = new URL('..', import.meta.url).href
const OWN_PATH = OWN.replace(/^file:\/\//, '')

interface StackHost {
  captureStackTrace?: (target: object, skip?: unknown) => void
  stackTraceLimit?: number
}

/** The call stack at one moment; `frames` and text are computed on first use. */
export class CapturedStack {
  readonly #holder: { stack?: string }
  #frames: readonly Frame[] | null = null

  constructor(holder: { stack?: string }) {
    this.#holder = holder
  }

  /** The user's frames, innermost last; frames of tensorfx and of the host are left out. */
  get frames(): readonly Frame[] {
    this.#frames ??= parseStack(this.#holder.stack ?? '')
    return this.#frames
  }

  /** The innermost frame of the user's program. */
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

/** Records the stack of the caller; frames above (and including) `skip` are left out. About a microsecond. */
export function captureStack(skip?: (...args: never[]) => unknown): CapturedStack {
  const host = Error as unknown as StackHost
  if (host.captureStackTrace === undefined) return new CapturedStack(new Error('stack'))
  const before = host.stackTraceLimit
  host.stackTraceLimit = LIMIT
  const holder: { stack?: string } = {}
  host.captureStackTrace(holder, skip ?? captureStack)
  if (before === undefined) delete host.stackTraceLimit
  else host.stackTraceLimit = before
  return new CapturedStack(holder)
}

/** Frames from the text of an error's stack: V8's form ("at f (file:1:2)"), and Firefox's and Safari's ("f@file:1:2"). */
function parseStack(text: string): Frame[] {
  const frames: Frame[] = []
  for (const line of text.split('\n')) {
    const match = /^\s*at (?:async )?(?:(.*?) \()?(.+?):(\d+):(\d+)\)?$/.exec(line) ?? /^(.*?)@(.+?):(\d+):(\d+)$/.exec(line)
    if (match === null) continue
    const url = match[2] as string
    if (isForeign(url)) continue
    const fn = (match[1] ?? '').replace(/^(?:new|Object\.|Module\.)\s?/, '')
    frames.push({ file: url.replace(/^file:\/\//, ''), line: Number(match[3]), column: Number(match[4]), fn: fn === '' ? '<anonymous>' : fn })
  }
  return frames.reverse()
}

function isForeign(url: string): boolean {
  return (
    url.startsWith('node:') ||
    url.startsWith('native') ||
    url === '<anonymous>' ||
    url.includes('tensorfx-generated/') ||
    url.startsWith(OWN) ||
    url.startsWith(OWN_PATH) ||
    url.includes('/node_modules/vitest/') ||
    url.includes('/node_modules/@vitest/') ||
    url.includes('wasm://') ||
    url.includes('eval at')
  )
}
