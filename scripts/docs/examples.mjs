// The examples of documentation pages: their blocks, the program that each is, and how a TypeScript one runs in a Node that cannot strip types.
//
// A ```ts or ```js block is a program of its own; ```ts continue continues the block before it. Its output is the ```text block that follows.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'amaro'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The pages whose examples run and compile, as paths below the root. */
export const pages = [
  ...['README.md', 'docs/errors.md', 'docs/security.md'],
  ...['docs/guide', 'docs/tutorials'].flatMap((folder) => readdirSync(root + folder).map((name) => `${folder}/${name}`)),
]

/** The text of a page. */
export const pageText = (name) => readFileSync(root + name, 'utf8')

const BLOCK = /```(js|ts)( continue)?\n([\s\S]*?)```\n(\n```text\n([\s\S]*?)```\n)?/g

/** A section of docs/error-examples.md: a code, a program that throws it, and the message. */
export const ERROR_EXAMPLE = /^## (TFX_\w+)\n\n```js\n([\s\S]*?)```\n(?:\n```text\n([\s\S]*?)```\n)?/gm

/** A row of docs/error-examples.md: a code without a program, and why. */
export const ERROR_WITHOUT_EXAMPLE = /^\| (TFX_\w+) +\| (.*?) +\|$/gm

/** The examples of a page. */
export function examplesOf(page) {
  const found = []
  for (const match of page.matchAll(BLOCK)) {
    const [all, language, continues, code, block, text] = match
    const end = match.index + all.length
    const last = found.at(-1)
    found.push({
      line: page.slice(0, match.index).split('\n').length,
      language,
      code,
      text: text ?? null,
      textAt: [end - (block?.length ?? 0), end],
      before: continues === undefined || last === undefined ? [] : [...last.before, last.code],
    })
  }
  return found
}

/** The code with spaces in place of its types, as Node 22 runs it: lines and columns stay. */
export const withoutTypes = (code) => transformSync(code, { mode: 'strip-only' }).code

/** Every option of TypeScript that refuses more programs, without types of Node: what users may have set. */
export const STRICT = {
  target: 'ES2022',
  lib: ['ES2023', 'ESNext.Disposable', 'DOM', 'DOM.Iterable'],
  module: 'NodeNext',
  moduleResolution: 'NodeNext',
  strict: true,
  erasableSyntaxOnly: true,
  exactOptionalPropertyTypes: true,
  isolatedModules: true,
  noFallthroughCasesInSwitch: true,
  noImplicitOverride: true,
  noImplicitReturns: true,
  noPropertyAccessFromIndexSignature: true,
  noUncheckedIndexedAccess: true,
  noUncheckedSideEffectImports: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  types: [],
  noEmit: true,
}
