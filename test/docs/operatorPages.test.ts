// What the pages of operators are made from: every declaration of an operator has a comment with an example.
import { describe, expect, it } from 'vitest'
import { allOps } from 'tensorfx/ops'
import { allAliases } from '../../src/ops/names/aliases.ts'
import { camelCase } from '../../src/protocol/index.ts'
import { findOperators } from '../../scripts/generateOps.mjs'
import { inPlaceForms } from '../ops/valueCases.ts'

describe.each(['torch', 'torch.nn.functional'])('the operators of %s', (namespace) => {
  const declared = findOperators().filter((op) => op.namespace === namespace)
  // In-place forms that follow from the declaration of their operator, and other names of it, are described there.
  const derived = new Set([...inPlaceForms(), ...allAliases.map(({ op }) => op)].map(({ qualname }) => qualname))
  const operators = allOps().filter((op) => op.qualname.slice(0, op.qualname.lastIndexOf('.')) === namespace && !derived.has(op.qualname))

  it('are those of the operator table', () => {
    const names = operators.map((op) => camelCase(op.qualname.slice(namespace.length + 1)))
    expect(names.length).toBeGreaterThan(30)
    expect(declared.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  })

  it('have comments with examples', () => {
    for (const { name, doc } of declared) expect(doc.indexOf('@example'), name).toBeGreaterThan(20)
  })
})
