// The tokens of a file, and hashes of them: two functions that differ in comments or layout alone have the same hash. The syntax tree knows what is inside of templates and regular
// expressions; what stands between its nodes is scanned. (The tree's own lists of tokens, `getChildren`, hold the same and take longer.)
import { createHash } from 'node:crypto'
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'

/** The hash of a text, 12 hexadecimal digits. */
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)

/** The text of a file as the model sees it: without a byte order mark, with `\n`. */
export const normalized = (text: string): string => text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')

export class Tokens {
  readonly #starts: number[] = []
  readonly #texts: string[] = []

  constructor(ts: Compiler, file: ts.SourceFile) {
    const { text } = file
    // Elements of JSX are nodes; `<` and `/` between them are tokens of their own.
    const scanner = ts.createScanner(ts.ScriptTarget.Latest, true, ts.LanguageVariant.Standard, text)
    const hasReturns = text.includes('\r')
    const add = (start: number, end: number): void => {
      const token = text.slice(start, end)
      this.#starts.push(start)
      this.#texts.push(hasReturns ? token.replaceAll('\r\n', '\n') : token)
    }
    /** Brackets, commas and words between nodes, which the tree does not hold. */
    const between = (from: number, to: number): void => {
      if (from >= to) return
      scanner.resetTokenState(from)
      while (scanner.scan() !== ts.SyntaxKind.EndOfFileToken && scanner.getTokenEnd() <= to) add(scanner.getTokenStart(), scanner.getTokenEnd())
    }
    const visit = (node: ts.Node): void => {
      if (node.kind <= ts.SyntaxKind.LastToken) {
        if (node.end > node.pos && node.kind !== ts.SyntaxKind.EndOfFileToken) add(node.getStart(file), node.end)
        return
      }
      let at = node.pos
      const child = (of: ts.Node): void => {
        between(at, of.pos)
        visit(of)
        at = of.end
      }
      ts.forEachChild(node, child, (list) => {
        for (const of of list) child(of)
      })
      between(at, node.end)
    }
    visit(file)
  }

  /** The hash of the tokens from one position to another. A comma before a closing bracket is layout. */
  hash(start: number, end: number): string {
    return hashOf(this.#between(start, end).join('\0'))
  }

  /** The hash of all tokens outside of some places, which are in order. */
  hashWithout(places: readonly (readonly [start: number, end: number])[]): string {
    const ends = [0, ...places.map(([, end]) => end)]
    const starts = [...places.map(([start]) => start), Number.POSITIVE_INFINITY]
    return hashOf(ends.map((end, i) => this.#between(end, starts[i] ?? 0).join('\0')).join('\0\0'))
  }

  #between(start: number, end: number): readonly string[] {
    let first = 0
    for (let above = this.#starts.length; first < above;) {
      const middle = (first + above) >> 1
      if ((this.#starts[middle] ?? 0) < start) first = middle + 1
      else above = middle
    }
    const texts: string[] = []
    for (let i = first; i < this.#starts.length && (this.#starts[i] ?? 0) < end; i++) {
      const text = this.#texts[i] ?? ''
      const isTrailing = text === ',' && /^[)\]}]$/.test(this.#texts[i + 1] ?? '') && !/^[,[]$/.test(texts.at(-1) ?? '')
      if (!isTrailing) texts.push(text)
    }
    return texts
  }
}
