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

/** Enough that the user's innermost frame is among them below all layers of tensorfx. */
const LIMIT = 24

/** Enough to reach generated code from inside an operator. */
const DEEP = 64

/** The folders of tensorfx itself: its frames are not the user's. Of the built package that is dist/, and src/ where source maps are read. */
const HERE = new URL('..', import.meta.url).href
const OWN: readonly string[] = [...new Set([HERE, HERE.replace(/\/dist\/$/, '/src/')])].flatMap((url) => [url, pathOf(url)])

/** V8's way to stacks; absent elsewhere. */
const host = Error as unknown as { captureStackTrace?: (target: object, skip?: unknown) => void; stackTraceLimit?: number }

/** Sets how many frames new errors record, and returns what {@link restoreStacks} sets back. The only place that touches the limit. */
function setLimit(limit: number): number | undefined {
  const before = host.stackTraceLimit
  host.stackTraceLimit = limit
  return before
}

/** Undoes {@link deepenStacks}. */
export function restoreStacks(before: number | undefined): void {
  if (before === undefined) delete host.stackTraceLimit
  else host.stackTraceLimit = before
}

/** Lets errors record stacks that reach down to generated code, until {@link restoreStacks} gets the returned value. */
export function deepenStacks(): number | undefined {
  const before = host.stackTraceLimit
  // Elsewhere than in V8 stacks have no limit; and somebody who asked for more gets more.
  if (host.captureStackTrace !== undefined && before !== undefined && before < DEEP) host.stackTraceLimit = DEEP
  return before
}

/** The call stack at one moment; `frames` and text are computed on first use. */
export class CapturedStack {
  #holder: { stack?: string } | null
  #frames: readonly Frame[] | null = null

  constructor(holder: { stack?: string }) {
    this.#holder = holder
  }

  /** A stack that was recorded elsewhere, innermost frame last. */
  static of(frames: readonly Frame[]): CapturedStack {
    const stack = new CapturedStack({})
    stack.#frames = frames
    return stack
  }

  /** The user's frames, innermost last; frames of tensorfx and of the host are left out. */
  get frames(): readonly Frame[] {
    if (this.#frames === null) {
      this.#frames = parseStack(this.#holder?.stack ?? '')
      // The engine's record holds the functions of the stack, and what they close over.
      this.#holder = null
    }
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

/** Records the stack of the caller; frames above (and including) `skipAfter` are left out. One to three microseconds. */
export function captureStack(skipAfter?: (...args: never[]) => unknown): CapturedStack {
  if (host.captureStackTrace === undefined) return new CapturedStack(new Error('stack'))
  const before = setLimit(LIMIT)
  const holder: { stack?: string } = {}
  host.captureStackTrace(holder, skipAfter ?? captureStack)
  restoreStacks(before)
  return new CapturedStack(holder)
}

/** Frames by the line of text that they were read from: a program's places are few, its stacks many. */
const interned = new Map<string, Frame | null>()

/** Frames from the text of an error's stack: V8's form ("at f (file:1:2)"), and Firefox's and Safari's ("f@file:1:2"). */
export function parseStack(text: string): Frame[] {
  const frames: Frame[] = []
  for (const line of text.split('\n')) {
    let frame = interned.get(line)
    if (frame === undefined) {
      frame = parseFrame(line)
      if (interned.size >= 10_000) interned.clear()
      interned.set(line, frame)
    }
    if (frame !== null) frames.push(frame)
  }
  return frames.reverse()
}

function parseFrame(line: string): Frame | null {
  const match =
    /^\s*at (?:async )?(.*?) \((.+):(\d+):(\d+)\)$/.exec(line) ??
    /^\s*at (?:async )?()(.+):(\d+):(\d+)$/.exec(line) ??
    /^(.*?)@(.+):(\d+):(\d+)$/.exec(line)
  if (match === null) return null
  const url = match[2] as string
  if (isForeign(url)) return null
  const fn = (match[1] ?? '')
    .replace(/^(?:new |async\*)/, '')
    .replace(/^(?:Object|Module|Proxy)\./, '')
    .replace(/ \[as .*\]$/, '')
  return Object.freeze({ file: pathOf(url), line: Number(match[3]), column: Number(match[4]), fn: fn === '' ? '<anonymous>' : fn })
}

/** `file:///C:/a%20b.ts?t=1` -> `C:/a b.ts`; other URLs without what development servers append. */
function pathOf(url: string): string {
  const bare = url.replace(/[?#].*$/, '')
  if (!bare.startsWith('file://')) return bare
  const path = bare.slice('file://'.length).replace(/^\/(?=[A-Za-z]:)/, '')
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

function isForeign(url: string): boolean {
  return (
    url.startsWith('node:') ||
    url.startsWith('native') ||
    url === '<anonymous>' ||
    OWN.some((folder) => url.startsWith(folder)) ||
    url.includes('tensorfx-generated/') ||
    url.includes('wasm://') ||
    url.includes('/node_modules/vitest/') ||
    url.includes('/node_modules/@vitest/') ||
    url.includes('eval at')
  )
}
