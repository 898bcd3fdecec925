// The documentation of every operator, read from its source: its parts are there, and its example gives what it says.
import { describe, expect, it } from 'vitest'
import * as tensorfx from 'tensorfx'
import { findOperators } from '../../scripts/generateOps.mjs'
import { missingInDoc, thrownIn } from './docDemands.ts'

const { torch } = tensorfx
const docs = findOperators().map(({ namespace, name, doc }) => ({
  name: `${namespace}.${name}`,
  text: doc.replaceAll(/^ *\* ?/gm, '').trim(),
}))

/** The value of an expression in which `torch` and `F` are known. */
function evaluate(expression: string): unknown {
  // oxlint-disable-next-line no-implied-eval -- the examples are ours
  return new Function('torch', 'F', `return (${expression})`)(torch, torch.nn.functional)
}

/** [the example, what it gives] of each @example tag; they are written as `expression // result`. */
function examplesIn(text: string): [string, string][] {
  const blocks = text.split(/^@/m).filter((block) => block.startsWith('example'))
  return blocks.flatMap((block) => {
    const lines = block.slice('example'.length).trim().split('\n')
    return lines.map((line): [string, string] => {
      const [, expression = '', result = ''] = /^(.*) \/\/ (.*)$/.exec(line) ?? []
      return [expression, result]
    })
  })
}

/** As toEqual, but numbers may differ in the digits that the documentation leaves out. */
function expectEqual(got: unknown, expected: unknown): void {
  if (typeof expected === 'number' && typeof got === 'number' && Number.isFinite(expected)) {
    expect(Math.abs(got - expected), `${got} instead of ${expected}`).toBeLessThanOrEqual(1e-5 * (1 + Math.abs(expected)))
  } else if (Array.isArray(expected) && Array.isArray(got)) {
    expect(got).toHaveLength(expected.length)
    expected.forEach((item, i) => expectEqual(got[i], item))
  } else expect(got).toEqual(expected)
}

describe.each(docs)('$name', ({ text }) => {
  it('says what it computes, what PyTorch calls it, which shapes it takes and gives, and what it throws', () => {
    expect(missingInDoc(text)).toEqual([])
    for (const name of thrownIn(text)) expect(tensorfx).toHaveProperty(name)
  })

  it('has an example that is right', () => {
    const examples = examplesIn(text)
    expect(examples.length).toBeGreaterThan(0)
    for (const [expression, result] of examples) expectEqual(evaluate(expression), evaluate(result))
  })
})
