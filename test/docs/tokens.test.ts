// The tokens of a file, from its tree and what is scanned between its nodes, beside the compiler's own lists of them.
import type * as ts from 'typescript6'
import { describe, expect, it } from 'vitest'
import { loadCompiler } from '../../src/docs/compiler.ts'
import { Tokens, hashOf } from '../../src/docs/read/tokens.ts'

const compiler = loadCompiler(import.meta.dirname)

const SOURCES: Readonly<Record<string, string>> = {
  'templates.ts': 'const a = `x ${ `in ${b} }` + /[`}]/g } y`, c = tag<number>`${1}`\n',
  'regex.ts': 'const r = /a\\/b[/]"/gu, q = a / b / c; if (x) /y/.test(z)\n',
  'generics.ts': 'const m = new Map<string, Array<Set<number>>>(); f<A<B<C>>>(x >> 2, y >>> 3, z >>= 1)\n',
  'comments.ts':
    '/** Doc @param a {x} */\n@dec() export abstract class A<T> { /* in */ #p = 1; static { ; } get x(): T | null { return null } // end\n}\n',
  'empty.ts': ';;\nfunction f() {}\nconst o = {}, l = [, 1, ,], g = async function* () { yield* x; }\nlabel: for (;;) break label\n',
  'types.ts':
    "type F = typeof import('x') | (new <const T>(...a: readonly [a?: T, ...r: T[]]) => asserts a is T)\ndeclare module 'm' { export = f }\n",
  'words.ts': "import a, { type b as c } from 'd' with { type: 'json' }\nexport * as ns from 'e'\nexport default a!?.b satisfies C as const\n",
  'jsx.tsx': 'const e = <A.B x="1 &amp; \'2\'" {...y}>text // no comment {/* one */} {z} <></> </A.B>\n',
  'old.js': '#!/usr/bin/env node\n/** @type {Map<string, number>} */\nmodule.exports = { a, "b": 1, [c]: 0x1f, d() {}, }\n',
  'lines.ts': '\uFEFFconst a = 1\r\n\r\nconst t = `two\r\nlines`,\r\n  b = 2\r\n',
  'broken.ts': 'const = {\n  a: \nfunction (\n',
}

/** The start and the text of each token, from the compiler's lists. */
function listed(file: ts.SourceFile): readonly (readonly [start: number, text: string])[] {
  const found: (readonly [number, string])[] = []
  const visit = (node: ts.Node): void => {
    if (node.kind >= compiler.SyntaxKind.FirstJSDocNode && node.kind <= compiler.SyntaxKind.LastJSDocNode) return
    const children = node.getChildren(file)
    for (const child of children) visit(child)
    if (
      children.length === 0 &&
      node.end > node.pos &&
      node.kind !== compiler.SyntaxKind.SyntaxList &&
      node.kind !== compiler.SyntaxKind.EndOfFileToken
    )
      found.push([node.getStart(file), node.getText(file).replaceAll('\r\n', '\n')])
  }
  visit(file)
  return found
}

describe.each(Object.entries(SOURCES))('%s', (name, text) => {
  const file = compiler.createSourceFile(name, text, compiler.ScriptTarget.ESNext, true)
  const tokens = new Tokens(compiler, file)
  const all = listed(file)
  const isTrailing = (i: number): boolean => all[i]?.[1] === ',' && /^[)\]}]$/.test(all[i + 1]?.[1] ?? '')
  /** The tokens that begin in a stretch. Blanks of JSX are tokens without a text, where the next one begins. */
  const between = (start: number, end: number): string =>
    all
      .filter(([at]) => start <= at && at < end)
      .map(([, of]) => of)
      .join('\0')

  it('has the tokens of the compiler, each at its place and no others between', () => {
    expect(all.length).toBeGreaterThan(4)
    for (const [i, [start]] of all.entries()) {
      if (isTrailing(i) || isTrailing(i + 1)) continue
      for (const end of [start + 1, (all[i + 1]?.[0] ?? text.length) + 1])
        expect([between(start, end), tokens.hash(start, end)]).toEqual([between(start, end), hashOf(between(start, end))])
    }
    expect(tokens.hash(0, all[0]?.[0] ?? 0)).toBe(hashOf(''))
  })
})
