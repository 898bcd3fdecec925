// Parses the text of stack traces into frames of the user's program.

/** One frame of the user's program. */
export interface Frame {
  /** Path or URL of the file. */
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  /** The name of the function, or '<anonymous>'. */
  readonly fn: string
  /** The source line, if it was recorded with the frame. */
  readonly code?: string | undefined
}

/** The folders of tensorfx itself, whose frames are left out: dist/ for the built package, and src/ if source maps are in use. */
const OWN: readonly string[] = foldersAround(import.meta.url)

/** A bundle in an inline script, a blob or a `data:` address is in no folder. */
function foldersAround(address: string): readonly string[] {
  try {
    const here = new URL('..', address).href
    return [...new Set([here, here.replace(/\/dist\/$/, '/src/')])].flatMap((url) => [url, pathOf(url)])
  } catch {
    return []
  }
}

/** Parsed frames by line of text. A program has many stack traces, but few distinct frames. */
const interned = new Map<string, Frame | null>()

/** The user's frames in the text of a stack trace, innermost last. Understands V8 ("at f (file:1:2)") and Firefox and Safari ("f@file:1:2"). */
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

function parseFrame(text: string): Frame | null {
  const match =
    /^\s*at (?:async )?(.*?) \((.+):(\d+):(\d+)\)$/.exec(text) ??
    /^\s*at (?:async )?()(.+):(\d+):(\d+)$/.exec(text) ??
    /^(.*?)@(.+):(\d+):(\d+)$/.exec(text)
  if (match === null) return null
  const [, name = '', url = '', line, column] = match
  if (isForeign(url)) return null
  const fn = name
    .replace(/^(?:new |async\*)/, '')
    .replace(/^(?:Object|Module|Proxy)\./, '')
    .replace(/ \[as .*\]$/, '')
  return Object.freeze({ file: pathOf(url), line: Number(line), column: Number(column), fn: fn === '' ? '<anonymous>' : fn })
}

/** The path of a file URL, `C:/a b.ts` for `file:///C:/a%20b.ts?t=1`; other URLs without the query that development servers append. */
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
