// Source maps of generated code, so that debuggers show the user's lines when they step through it.
import { isOwn } from '../../provenance/index.ts'
import type { GeneratedCode, SourceMap } from '../graph/graphText.ts'
import type { Node } from '../graph/node.ts'
import { originOf } from '../graph/origin.ts'

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

/** The source map of generated code, given the node of each line; null if the origin of no line is known. */
export function sourceMapOf(nodes: readonly (Node | null)[]): SourceMap | null {
  const sources: string[] = []
  const lines: string[] = []
  let source = 0
  let line = 0
  let column = 0
  for (const node of nodes) {
    const frame = node === null ? null : originOf(node)
    // Debuggers, and Node with --enable-source-maps, open the files that a map names, so frames from a file stay out of it.
    if (frame === null || !isOwn(frame)) {
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

/** Code with more lines gets no map: parsing all their stack traces would take longer than the rest of the compilation. */
const MAX_LINES = 2000

/** The `//# sourceMappingURL=` line for generated code; '' if there is no map. */
export function sourceMapComment(code: GeneratedCode): string {
  const map = code.lineCount > MAX_LINES ? null : code.sourceMap
  return map === null ? '' : `\n//# sourceMappingURL=data:application/json;base64,${toBase64(JSON.stringify(map))}`
}

function toBase64(text: string): string {
  let binary = ''
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return btoa(binary)
}
