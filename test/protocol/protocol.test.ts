// What rooms that do not know each other agree on: names, effects, overrides, marks.
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ArgumentError, nn, torch } from 'tensorfx'
import {
  OVERRIDE,
  camelCase,
  declareEffects,
  effectsOf,
  findOverride,
  inspectAs,
  isParameter,
  isPlainObject,
  isTensorLike,
  lookupTarget,
  nameTarget,
  parseSchema,
  snakeCase,
  targetInfo,
} from '../../src/protocol/index.ts'
import type { Override } from '../../src/protocol/index.ts'
import { camelCase as generatorsCamelCase } from '../../scripts/ops/signatures.mjs'

const { tensor } = torch

describe('names', () => {
  test('camelCase', () => {
    expect(['log_softmax', 'max_pool2d_with_indices', 'relu', 'add_', '_assert', 'conv2d_x', 'a__b'].map(camelCase)).toEqual([
      'logSoftmax',
      'maxPool2dWithIndices',
      'relu',
      'add_',
      '_assert',
      'conv2dX',
      'aB',
    ])
  })

  test('the generator of operators, which runs before anything is built, has the same camelCase', () => {
    const names = ['log_softmax', 'max_pool2d_with_indices', 'add_', '_assert', '__and__', 'conv2d_x', 'a__b', 'i0', 'P_x', 'x_1']
    expect(names.map(generatorsCamelCase)).toEqual(names.map(camelCase))
  })

  test('snakeCase', () => {
    expect(['MaxPool2d', 'ReLU', 'relu', 'add_', 'Linear', 'x1Y'].map(snakeCase)).toEqual(['max_pool2d', 're_lu', 'relu', 'add_', 'linear', 'x1y'])
  })
})

test('a plain object is a literal, or has no prototype', () => {
  expect([{}, { a: 1 }, Object.create(null)].every(isPlainObject)).toBe(true)
  expect([null, undefined, 1, 'a', [], new Date(), new Map(), () => 0, Object.create({}), tensor(1)].some(isPlainObject)).toBe(false)
})

describe('targets', () => {
  test('a named function is found by its name', () => {
    const fn = (): number => 1
    expect(targetInfo(fn)).toBeUndefined()
    expect(nameTarget(fn, { name: 'user.protocol.first' })).toBe(fn)
    expect(lookupTarget('user.protocol.first')).toBe(fn)
    expect(targetInfo(fn)).toEqual({ name: 'user.protocol.first', shortName: 'first', effects: 'pure' })
    expect(lookupTarget('user.protocol.none')).toBeUndefined()
    expect([null, 'user.protocol.first', {}].map(targetInfo)).toEqual([undefined, undefined, undefined])
  })

  test('a name without dots is its own short name', () => {
    const fn = (): number => 1
    nameTarget(fn, { name: 'protocolPlain' })
    expect(targetInfo(fn)?.shortName).toBe('protocolPlain')
  })

  test('the short name, the effects and the schema can be given', () => {
    const fn = (): number => 1
    const schema = parseSchema('second(Tensor self) -> Tensor')
    nameTarget(fn, { name: 'user.protocol.second', shortName: 'two', effects: 'io', schema })
    expect(targetInfo(fn)).toEqual({ name: 'user.protocol.second', shortName: 'two', effects: 'io', schema })
  })

  test('a name belongs to one function, which may be named again', () => {
    const fn = (): number => 1
    nameTarget(fn, { name: 'user.protocol.third' })
    nameTarget(fn, { name: 'user.protocol.third', effects: 'mutates' })
    expect(effectsOf(fn)).toBe('mutates')
    expect(() => nameTarget(() => 2, { name: 'user.protocol.third' })).toThrow(
      new ArgumentError("nameTarget: the name 'user.protocol.third' already belongs to another function; choose another name."),
    )
  })

  test('effects: declared, else as named, else pure', () => {
    const [plain, named] = [(): number => 1, (): number => 2]
    nameTarget(named, { name: 'user.protocol.fourth', effects: 'random' })
    expect([effectsOf(plain), effectsOf(named)]).toEqual(['pure', 'random'])
    for (const fn of [plain, named]) declareEffects(fn, 'io')
    expect([effectsOf(plain), effectsOf(named)]).toEqual(['io', 'io'])
  })
})

describe('findOverride', () => {
  const override = (): Override => ({ [OVERRIDE]: () => 'taken over' })

  test('takes the first one, also in arrays, in plain objects and among functions', () => {
    const [first, second] = [override(), override()]
    const callable = Object.assign(() => 0, override())
    expect(findOverride([1, first, second])).toBe(first)
    expect(findOverride([null, [1, [second]], first])).toBe(second)
    expect(findOverride([{ a: 1, b: { c: [first] } }, second])).toBe(first)
    expect(findOverride([() => 0, callable])).toBe(callable)
  })

  test('gives null where nothing takes over', () => {
    class Holder {
      readonly held = override()
    }
    expect(findOverride([])).toBeNull()
    expect(findOverride([1, 'a', null, undefined, [], {}, () => 0, { [OVERRIDE]: true }, new Holder()])).toBeNull()
  })
})

test('inspectAs shows one text', () => {
  class Point {
    readonly x = 1
  }
  inspectAs(Point.prototype, ({ x }) => `Point at ${x}`)
  expect(inspect([new Point()])).toBe('[ Point at 1 ]')
  expect(Object.keys(Point.prototype)).toEqual([])
})

test('tensors and parameters are known by their marks', () => {
  const [plain, parameter] = [tensor(1), new nn.Parameter(tensor(2))]
  expect([plain, parameter].every(isTensorLike)).toBe(true)
  expect([isParameter(plain), isParameter(parameter)]).toEqual([false, true])
  expect([null, undefined, 1, {}, [plain], { shape: [] }].some((value) => isTensorLike(value) || isParameter(value))).toBe(false)
})
