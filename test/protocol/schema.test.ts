// PyTorch's schema language, parsed.
import { describe, expect, test } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { parseSchema } from '../../src/protocol/index.ts'
import type { SchemaType } from '../../src/protocol/index.ts'

const type = (base: SchemaType['base'], rest: Partial<SchemaType> = {}): SchemaType => ({
  base,
  isSize: false,
  list: false,
  optional: false,
  mutated: false,
  ...rest,
})
const argument = (text: string) => parseSchema(`f(${text}) -> Tensor`).args[0]
const valueOf = (text: string) => argument(`int x=${text}`)?.default

describe('parseSchema', () => {
  test('reads the name, the arguments and the result', () => {
    const text = 'log_softmax.int(Tensor self, int dim, *, ScalarType? out_dtype=None) -> Tensor'
    expect(parseSchema(` ${text}\n`)).toEqual({
      name: 'log_softmax',
      overload: 'int',
      args: [
        { name: 'self', type: type('Tensor'), kwargOnly: false, hasDefault: false, default: undefined },
        { name: 'dim', type: type('int'), kwargOnly: false, hasDefault: false, default: undefined },
        { name: 'outDtype', type: type('ScalarType', { optional: true }), kwargOnly: true, hasDefault: true, default: null },
      ],
      returns: [type('Tensor')],
      text,
    })
    expect(parseSchema('f() -> Tensor')).toMatchObject({ name: 'f', overload: '', args: [] })
  })

  test('reads modifiers of types', () => {
    expect(argument('Tensor(a!) self')?.type).toEqual(type('Tensor', { mutated: true }))
    expect(argument('Tensor(a) self')?.type).toEqual(type('Tensor'))
    expect(argument('int[2] size')?.type).toEqual(type('int', { list: true }))
    expect(argument('int[]? dim')?.type).toEqual(type('int', { list: true, optional: true }))
    expect(argument('SymInt[]? size')?.type).toEqual(type('int', { isSize: true, list: true, optional: true }))
  })

  test('reads defaults', () => {
    expect(['None', 'True', 'False', '-1', '1e-05', '2.5'].map(valueOf)).toEqual([null, true, false, -1, 1e-5, 2.5])
    expect(['[]', '[0,1]', '[ 2, 3 ]', '[True]'].map(valueOf)).toEqual([[], [0, 1], [2, 3], [true]])
    expect(["'none'", '"mean"', "''", 'Mean'].map(valueOf)).toEqual(['none', 'mean', '', 'Mean'])
  })

  test('reads several results', () => {
    expect(parseSchema('f(Tensor self) -> (Tensor, Tensor[])').returns).toEqual([type('Tensor'), type('Tensor', { list: true })])
    expect(parseSchema('f(Tensor self) -> (Tensor values, Tensor indices)').returns).toEqual([type('Tensor'), type('Tensor')])
    expect(parseSchema('f(Tensor(a!) self) -> Tensor(a!)').returns).toEqual([type('Tensor', { mutated: true })])
  })

  test.each([
    ['relu', "parseSchema: expected 'name(arguments) -> returns', got 'relu'."],
    ['relu(Tensor self)', "parseSchema: expected 'name(arguments) -> returns', got 'relu(Tensor self)'."],
    ['f(Tensor) -> Tensor', "parseSchema: cannot read the argument 'Tensor' in 'f(Tensor) -> Tensor'."],
    ['f(Tensor? [] x) -> Tensor', "parseSchema: cannot read the type 'Tensor? []' in 'f(Tensor? [] x) -> Tensor'."],
    [
      'f(Tenser x) -> Tensor',
      "parseSchema: unknown type 'Tenser' in 'f(Tenser x) -> Tensor'; known are Tensor, Scalar, int, float, bool, str, ScalarType, Generator, any.",
    ],
  ])('%s', (text, message) => {
    expect(() => parseSchema(text)).toThrow(new ArgumentError(message))
  })
})
