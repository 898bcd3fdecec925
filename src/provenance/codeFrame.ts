// The user's source around a line. In Node it is read from the file, and in Deno with --allow-read; browsers cannot read it.
import { isAllowed } from '../protocol/index.ts'
import type { Frame } from './frame.ts'

const cache = new Map<string, readonly string[] | null>()

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
  cache.set(file, lines)
  return lines
}

/** The source line of a frame; null if it cannot be read. */
export function sourceLine(frame: Frame): string | null {
  return linesOf(frame.file)?.[frame.line - 1] ?? null
}

/** The lines around a frame, with a marker under the column; null if the source cannot be read. */
export function codeFrame(frame: Frame, context = 2): string | null {
  const lines = linesOf(frame.file)
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
