// The declarations from which the API reference makes a page for each operator.
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { allOps } from 'tensorfx/ops'
import { allAliases } from '../../src/ops/aliases.ts'
import { camelCase } from '../../src/protocol/index.ts'
import { operatorPages } from '../../scripts/operatorPages.mjs'
import { inPlaceForms } from '../ops/valueCases.ts'

const pages = operatorPages()
const DECLARATION =
  /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n(?:export )?declare const (\w+): typeof import\('(.*?)'\)\.(\w+)\n(?:export \{ \w+ as (\w+) \}\n)?/g

describe.each(['torch', 'torch.nn.functional'])('the pages of %s', (namespace) => {
  const text = pages.get(`${namespace}.ts`) ?? ''
  const declared = [...text.matchAll(DECLARATION)].map(([, comment = '', name = '', path = '', constant = '', exported = name]) => ({
    comment,
    name: exported,
    path,
    constant,
  }))
  // In-place forms that follow from the declaration of their operator, and other names of it, are described there.
  const derived = new Set([...inPlaceForms(), ...allAliases.map(({ op }) => op)].map(({ qualname }) => qualname))
  const operators = allOps().filter((op) => op.qualname.slice(0, op.qualname.lastIndexOf('.')) === namespace && !derived.has(op.qualname))

  it('are those of the operator table', () => {
    const names = operators.map((op) => camelCase(op.qualname.slice(namespace.length + 1)))
    expect(names.length).toBeGreaterThan(30)
    expect(declared.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  })

  it('show what the sources export, as functions, with comments and examples', async () => {
    const folder = new URL('../../docs/api/operators/', import.meta.url)
    for (const { comment, name, path, constant } of declared) {
      const module = (await import(pathToFileURL(fileURLToPath(new URL(path, folder))).href)) as Record<string, unknown>
      const { op } = module[constant] as { readonly op: { readonly qualname: string } }
      expect(camelCase(op.qualname), name).toBe(`${namespace}.${name}`)
      expect(comment.indexOf('@function'), name).toBeGreaterThan(20)
      expect(comment.indexOf('@function'), name).toBeLessThan(comment.indexOf('@example'))
    }
  })
})
