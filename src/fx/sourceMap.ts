// An inline source map, so that a debugger that steps through generated code shows the user's lines.
import type { GeneratedCode } from './generatedCode.ts'
import { originOf } from './origin.ts'

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Base64 VLQ, the number format of source maps. */
function vlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1
  let out = ''
  do {
    const digit = rest & 31
    rest >>>= 5
    out += DIGITS[rest > 0 ? digit | 32 : digit]
  } while (rest > 0)
  return out
}

/** A source map, version 3. */
export interface SourceMap {
  readonly version: 3
  readonly sources: readonly string[]
  readonly names: readonly string[]
  readonly mappings: string
}

/** Which line of the user's program each generated line comes from; null when none is known to come from there. */
export function sourceMapOf(code: GeneratedCode): SourceMap | null {
  const sources: string[] = []
  const lines: string[] = []
  let source = 0
  let line = 0
  let column = 0
  for (let generated = 1; generated <= code.lineCount; generated++) {
    const node = code.nodeAt(generated)
    const frame = node === null ? null : originOf(node)
    if (frame === null) {
      lines.push('')
      continue
    }
    let index = sources.indexOf(frame.file)
    if (index < 0) index = sources.push(frame.file) - 1
    lines.push(vlq(0) + vlq(index - source) + vlq(frame.line - 1 - line) + vlq(frame.column - 1 - column))
    source = index
    line = frame.line - 1
    column = frame.column - 1
  }
  if (sources.length === 0) return null
  return { version: 3, sources: sources.map((s) => (s.startsWith('/') ? `file://${s}` : s)), names: [], mappings: lines.join(';') }
}

/** Graphs beyond this many lines go without a map: reading all their stacks would cost more than the rest of the compilation. */
const MAX_LINES = 2000

/** The `//# sourceMappingURL=` line for a generated source, or '' without a map. */
export function sourceMapComment(code: GeneratedCode): string {
  const map = code.lineCount > MAX_LINES ? null : code.sourceMap
  return map === null ? '' : `\n//# sourceMappingURL=data:application/json;base64,${toBase64(JSON.stringify(map))}`
}

function toBase64(text: string): string {
  let binary = ''
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return btoa(binary)
}
