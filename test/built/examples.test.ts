// The examples of the README, the guides and the page of errors compile against the declarations that users get. test/docs/pages.test.ts runs them.
import { beforeAll, describe, expect, it } from 'vitest'
import { examplesOf, pageText, pages } from '../../scripts/docs/examples.mjs'
import { errorsOf } from './compiler.ts'

const fileOf = (page: string, line: number): string => `${page.replace(/\.md$/, '').replaceAll('/', '-')}-${line}.ts`
const examples = pages.flatMap((page) => examplesOf(pageText(page)).map((example) => ({ ...example, page, file: fileOf(page, example.line) })))

describe('under every strict option, the examples compile of', () => {
  let errors: readonly string[] = []
  // One run for all, since each takes a second. Files without an import or export would be scripts, which share their names. Some examples use modules of Node.
  beforeAll(() => {
    errors = errorsOf(Object.fromEntries(examples.map(({ file, before, code }) => [file, `${before.join('')}${code}\nexport {}\n`])), ['node'])
  })

  it.each(pages)('%s', (page) => {
    const files = examples.filter((example) => example.page === page).map(({ file }) => `${file}(`)
    expect(files.length).toBeGreaterThan(0)
    expect(errors.filter((error) => files.some((file) => error.startsWith(file)))).toEqual([])
  })

  it('all pages, without errors elsewhere', () => expect(errors).toEqual([]))

  it('all pages, which are in TypeScript', () => expect(examples.filter(({ language }) => language !== 'ts')).toEqual([]))
})

const MISTAKES: Readonly<Record<string, readonly [code: string, message: string]>> = {
  strict: ['export const f = (x) => x', "Parameter 'x' implicitly has an 'any' type"],
  noUncheckedIndexedAccess: ['export const x: number = [1][0]', "undefined' is not assignable to type 'number'"],
  exactOptionalPropertyTypes: ['export const x: { y?: number } = { y: undefined }', 'exactOptionalPropertyTypes'],
  noImplicitOverride: ['class A {\n  f() {}\n}\nexport class B extends A {\n  f() {}\n}', "must have an 'override' modifier"],
  noImplicitReturns: ['export function f(x: boolean) {\n  if (x) return 1\n}', 'Not all code paths return a value'],
  noPropertyAccessFromIndexSignature: ['declare const o: Record<string, number>\nexport const x: number | undefined = o.y', 'index signature'],
  verbatimModuleSyntax: [
    "import { Node } from 'tensorfx/fx'\nimport { DType } from 'tensorfx'\nexport type T = Node | DType",
    'verbatimModuleSyntax',
  ],
  erasableSyntaxOnly: ['export enum E {\n  a,\n}', "'erasableSyntaxOnly' is enabled"],
}

describe('an example would be refused for', () => {
  let errors: readonly string[] = []
  beforeAll(() => {
    errors = errorsOf(Object.fromEntries(Object.entries(MISTAKES).map(([option, [code]]) => [`${option}.ts`, code])))
  })

  it.each(Object.entries(MISTAKES))('%s', (option, [, message]) => {
    expect(errors.filter((error) => error.startsWith(`${option}.ts(`)).join('\n')).toContain(message)
  })
})
