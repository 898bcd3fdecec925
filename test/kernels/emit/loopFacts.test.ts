// What the emitter moves in front of a loop: the largest expressions whose values no iteration changes.
import { expect, test } from 'vitest'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import type { Random } from '../../../scripts/fuzz/random.mjs'
import { factsOf } from '../../../src/kernels/emit/loopFacts.ts'
import {
  assign,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  element,
  forLoop,
  iota,
  load,
  local,
  localArray,
  lookup,
  loopVar,
  read,
  setElement,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, LoopMode, Stmt } from '../../../src/kernels/ir/loopIr.ts'

const [out, a] = [bufferParam('out', 'float32', 'readwrite'), bufferParam('a', 'float32')]
const [outer, loop, inner] = [loopVar('outer', 4), loopVar('loop', 8), loopVar('inner', 2)]
const [before, changed, within] = [local('before', 'float32'), local('changed', 'float32'), local('within', 'float32')]
const [kept, set] = [localArray('kept', 'float32', [4]), localArray('set', 'float32', [4])]

interface Leaf {
  readonly expr: Expr
  /** Whether it has one value in all iterations of a loop that stores to `out`, and of one that stores nothing. */
  readonly stays: boolean
  readonly staysWithoutStores: boolean
}

/** `isIndependent`: of loads, whether stores of other iterations are no matter. */
function leaves(isIndependent: boolean): readonly Leaf[] {
  const leaf = (expr: Expr, stays: boolean, staysWithoutStores = stays): Leaf => ({ expr, stays, staysWithoutStores })
  return [
    ...[leaf(constant('float32', 2), true), leaf(cast(iota(outer), 'float32'), true), leaf(cast(iota(loop), 'float32'), false)],
    ...[leaf(cast(iota(inner), 'float32'), false), leaf(read(before), true), leaf(read(changed), false), leaf(read(within), false)],
    ...[leaf(load(a, at([outer, 1])), isIndependent, true), leaf(load(a, at([outer, 1], [loop, 1])), false)],
    ...[leaf(load(a, at([inner, 1])), false), leaf(load(out, at([outer, 1])), false, true)],
    ...[leaf(element(kept, 1), true), leaf(element(set, 1), false), leaf(element(kept, inner), false)],
    leaf(cast(lookup([1, 2, 3, 4, 5, 6, 7, 8], at([loop, 1])), 'float32'), false),
  ]
}

/** An expression, whether it stays, and the largest parts of it that do. */
function drawn(
  { pick, chance }: Random,
  from: readonly Leaf[],
  stores: boolean,
  depth: number,
): { expr: Expr; stays: boolean; parts: readonly Expr[] } {
  if (depth === 0 || chance(1 / 5)) {
    const { expr, stays, staysWithoutStores } = pick(from)
    const isFixed = stores ? stays : staysWithoutStores
    return { expr, stays: isFixed, parts: isFixed ? [expr] : [] }
  }
  const [x, y] = [drawn({ pick, chance } as Random, from, stores, depth - 1), drawn({ pick, chance } as Random, from, stores, depth - 1)]
  const expr = call(pick(['add', 'mul', 'max']), x.expr, y.expr)
  const stays = x.stays && y.stays
  return { expr, stays, parts: stays ? [expr] : [...x.parts, ...y.parts] }
}

test('the largest expressions that stay are moved, of drawn ones in all kinds of loops', () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = randomFrom(seed)
    const mode = random.pick<LoopMode>(['serial', 'parallel', 'simd', 'lanes', 'unroll'])
    const stores = random.chance(1 / 2)
    const { expr, parts } = drawn(random, leaves(mode !== 'serial' && mode !== 'unroll'), stores, 4)
    const body: Stmt[] = [
      declare(within, constant('float32', 0)),
      assign(changed, read(within)),
      setElement(set, [0], read(changed)),
      forLoop(inner, 'serial', [stores ? store(out, at([outer, 1], [loop, 1], [inner, 1]), expr) : declare(local('last', 'float32'), expr)]),
    ]
    // A leaf that is there twice is moved once; constants of other statements are moved too.
    const found = new Set(factsOf(forLoop(loop, mode, body), false).invariants.exprs)
    for (const part of parts) expect(found, `seed ${seed}`).toContain(part)
    const others = [...found].filter((one) => !parts.includes(one))
    expect(
      others.every(({ kind }) => kind === 'const'),
      `seed ${seed}`,
    ).toBe(true)
  }
})

test('an expression that contains another one twice, sixty deep, is examined once', () => {
  let value: Expr = load(a, at())
  for (let depth = 0; depth < 60; depth++) value = call('add', value, value)
  const { invariants } = factsOf(forLoop(loop, 'serial', [declare(within, value)]), false)
  expect(invariants.exprs).toEqual([value])
})
