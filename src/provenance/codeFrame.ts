// The user's source around a line. In Node it is read from the file, and in Deno with --allow-read; browsers cannot read it.
import { isAllowed } from '../protocol/index.ts'
import type { Frame } from './frame.ts'

/** How many files are kept. */
const MAX_FILES = 100
const cache = new Map<string, readonly string[] | null>()

/** The frames of this process's own stacks. A frame that comes from a file may name any path, so only of these are the files read. */
const own = new WeakSet<Frame>()

/** Marks frames as those of this process. */
export function markOwn(frames: readonly Frame[]): void {
  for (const frame of frames) own.add(frame)
}

/** Whether a frame is of this process, not from a file. */
export const isOwn = (frame: Frame): boolean => own.has(frame)

function linesOf(file: string): readonly string[] | null {
  const known = cache.get(file)
  if (known !== undefined) return known
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  let lines: readonly string[] | null = null
  try {
    lines = fs === undefined || !isAllowed({ name: 'read', path: file }) ? null : fs.readFileSync(file, 'utf8').split('\n')
  } catch {
    lines = null
  }
  // Frames usually come from a few files. A long-lived process that sees many does not keep them all.
  if (cache.size >= MAX_FILES) for (const [oldest] of [...cache].slice(0, MAX_FILES / 2)) cache.delete(oldest)
  cache.set(file, lines)
  return lines
}

/** The source line of a frame; null if it is unknown. */
export function sourceLine(frame: Frame): string | null {
  return frame.code ?? (isOwn(frame) ? (linesOf(frame.file)?.[frame.line - 1] ?? null) : null)
}

/** The lines around a frame, with a marker under the column; null if the source is unknown. Of a frame from a file, only the recorded line is known. */
export function codeFrame(frame: Frame, context = 2): string | null {
  if (frame.code !== undefined) return `> ${frame.line} | ${frame.code}`
  const lines = isOwn(frame) ? linesOf(frame.file) : null
  if (lines === null || frame.line > lines.length) return null
  const first = Math.max(1, frame.line - context)
  const last = Math.min(lines.length, frame.line + context)
  const width = String(last).length
  const out: string[] = []
  for (let n = first; n <= last; n++) {
    out.push(`${n === frame.line ? '>' : ' '} ${String(n).padStart(width)} | ${lines[n - 1] ?? ''}`)
    if (n === frame.line) out.push(`  ${' '.repeat(width)} | ${' '.repeat(Math.max(0, frame.column - 1))}^`)
  }
  return out.join('\n')
}
