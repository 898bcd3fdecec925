// What graphs record of the values of their nodes: one file of the sources knows the key, and what is read is checked.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { Graph } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { copyValue, hasSeveralValues, isTensorRecord, knownValue, recordOf, recordValue, recordedValue } from '../../src/fx/graph/nodeValue.ts'
import { tensorSpec, tensorSpecs } from '../../src/aot/meta/valueSpec.ts'

const node = (): Node => new Graph().placeholder('x')
const record = { shape: [2, 3], dtype: 'float32' }

describe('the value of a node', () => {
  test('is recorded and read; a copy of the node has it too', () => {
    const [from, to] = [node(), node()]
    expect([recordedValue(from), tensorSpec(from), tensorSpecs(from)]).toEqual([undefined, null, []])
    recordValue(from, record)
    copyValue(to, from)
    expect([recordedValue(to), tensorSpec(to), tensorSpecs(to), hasSeveralValues(to)]).toEqual([record, record, [record], false])
  })

  test('may be several tensors, none of which is the value', () => {
    const several = node()
    recordValue(several, [record, record])
    expect([tensorSpec(several), tensorSpecs(several), hasSeveralValues(several)]).toEqual([null, [record, record], true])
  })

  test('is not a tensor if a file says something else in its place', () => {
    for (const value of [3, 'float32', null, {}, { shape: 3, dtype: 'float32' }, { shape: [2] }, { shape: [2], dtype: 7 }, [record, 3]]) {
      const odd = node()
      odd.meta['val'] = value
      expect([isTensorRecord(value), tensorSpec(odd), tensorSpecs(odd)], JSON.stringify(value)).toEqual([false, null, []])
    }
    // A dtype that PyTorch has and tensorfx lacks can be shown, but no tensor has it.
    const foreign = { shape: [2], dtype: 'float8_e4m3fn' }
    const other = node()
    recordValue(other, foreign)
    expect([isTensorRecord(foreign), tensorSpec(other), tensorSpecs(other)]).toEqual([true, null, []])
  })

  test('is what a trace recorded, before what ShapeProp and PyTorch’s dynamo recorded', () => {
    const known = node()
    known.meta['example_value'] = 'example'
    expect(knownValue(known)).toBe('example')
    known.meta['tensor_meta'] = 'shapes'
    expect(knownValue(known)).toBe('shapes')
    recordValue(known, record)
    expect(knownValue(known)).toBe(record)
  })

  test('is made of a tensor with its strides', () => {
    expect(recordOf(torch.zeros([2, 3]).t())).toEqual({ shape: [3, 2], dtype: 'float32', strides: [1, 3] })
  })
})

test('one file of the sources reads and writes the key', () => {
  const root = fileURLToPath(new URL('../../src/', import.meta.url))
  const users = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) =>
      name.endsWith('.ts') &&
      !name.includes('generated') &&
      /meta(\['val'\]|\.val\b(?!`))/.test(readFileSync(root + name, 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, '')),
  )
  expect(users).toEqual(['fx/graph/nodeValue.ts'])
})
