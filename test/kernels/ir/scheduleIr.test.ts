// What schedules write in the loop IR: steps, loops that are written out or run in parallel, local arrays, scratch memory, derived sizes. Their text, the errors of
// their specification, and what they mean.
import { describe, expect, test } from 'vitest'
import { KernelError } from '../../../src/kernels/ir/errors.ts'
import {
  accumulate,
  assign,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  declareArray,
  element,
  forLoop,
  iota,
  load,
  local,
  localArray,
  lookup,
  loopVar,
  read,
  reduceLanes,
  scratch,
  setElement,
  sizeOf,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Index, Kernel, LoopVar, Param, Scratch, Size, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { printKernel } from '../../../src/kernels/ir/print.ts'
import { scratchBytes } from '../../../src/kernels/ir/scratchLayout.ts'
import { paramsIn, roundedDown, roundedUp, sizeDifference, sizeProduct, sizeSum, sizeText, sizeValue } from '../../../src/kernels/ir/sizes.ts'
import { verifyKernel } from '../../../src/kernels/ir/verify.ts'
import { runOracle } from '../harness.ts'
import type { Args } from '../harness.ts'

const [rows, depth] = [sizeParam('rows'), sizeParam('depth')]
const [y, w, x] = [bufferParam('y', 'float32', 'readwrite'), bufferParam('w', 'float32'), bufferParam('x', 'float32')]
const f32 = (value: number): Expr => constant('float32', value)
const kernel = (body: readonly Stmt[], parts: readonly Scratch[] = [], params: readonly Param[] = [y, w, x, rows, depth]): Kernel => ({
  name: 'k',
  params,
  scratch: parts,
  body,
})
const from = (base: Size, ...terms: readonly (readonly [LoopVar, Size])[]): Index => ({ ...at(...terms), base })
const sums = localArray('sums', 'float32', [4, 8])
const [i, r, k] = [loopVar('i', rows), loopVar('r', 4), loopVar('k', 8)]
const zeros = declareArray(sums, f32(0))
/** sums[r, k] = value. */
const set = (value: Expr): Stmt => setElement(sums, [r, k], value)
/** Statements for every element of `sums`. */
const overSums = (...body: readonly Stmt[]): Stmt => forLoop(r, 'unroll', [forLoop(k, 'lanes', body)])

/** y[r] = sum over k of w[r, k] * x[k]: the example of loopIr.ts, with what it leaves out. */
function matrixVector(): Kernel {
  const r0 = loopVar('r0', roundedDown(rows, 4), 4)
  const k0 = loopVar('k0', roundedDown(depth, 8), 8)
  const acc = local('acc', 'float32')
  const [all, rest] = [loopVar('all', depth), loopVar('rest', sizeDifference(rows, roundedDown(rows, 4)))]
  const d = loopVar('d', sizeDifference(depth, roundedDown(depth, 8)))
  const last = local('last', 'float32')
  const done = roundedDown(depth, 8)
  return kernel([
    forLoop(
      r0,
      'parallel',
      [
        zeros,
        forLoop(k0, 'serial', [
          overSums(set(call('mulAdd', load(w, at([r0, depth], [r, depth], [k0, 1], [k, 1])), load(x, at([k0, 1], [k, 1])), element(sums, r, k)))),
        ]),
        forLoop(r, 'unroll', [
          declare(last, reduceLanes('add', sums, r)),
          forLoop(d, 'serial', [
            accumulate(last, 'add', call('mul', load(w, from(done, [r0, depth], [r, depth], [d, 1])), load(x, from(done, [d, 1])))),
          ]),
          store(y, at([r0, 1], [r, 1]), read(last)),
        ]),
      ],
      16,
    ),
    forLoop(rest, 'serial', [
      declare(acc, f32(0)),
      forLoop(all, 'serial', [
        accumulate(acc, 'add', call('mul', load(w, from(sizeProduct(roundedDown(rows, 4), depth), [rest, depth], [all, 1])), load(x, at([all, 1])))),
      ]),
      store(y, from(roundedDown(rows, 4), [rest, 1]), read(acc)),
    ]),
  ])
}

describe('sizes', () => {
  test('of numbers are numbers, and what changes nothing is left out', () => {
    expect([sizeSum(3, 4), sizeDifference(3, 4), sizeProduct(3, 4), roundedDown(11, 4), roundedUp(11, 4), roundedUp(12, 4)]).toEqual([
      7, -1, 12, 8, 12, 12,
    ])
    expect([sizeSum(rows, 0), sizeSum(0, rows), sizeDifference(rows, 0), sizeProduct(1, rows), sizeProduct(rows, 1), roundedDown(rows, 1)]).toEqual(
      Array.from({ length: 6 }, () => rows),
    )
    expect([sizeProduct(0, rows), sizeProduct(rows, 0)]).toEqual([0, 0])
  })

  test('of parameters have a value in each call, a text, and their parameters', () => {
    const size = sizeProduct(sizeSum(roundedUp(rows, 4), depth), sizeDifference(rows, 3))
    expect(sizeValue(size, ({ name }) => (name === 'rows' ? 5 : 7))).toBe((8 + 7) * 2)
    expect(sizeText(size)).toBe('((((rows + 3) down to 4) + depth) * (rows - 3))')
    expect(paramsIn(size)).toEqual([rows, depth, rows])
    // As i32.
    expect(sizeValue(sizeProduct(rows, rows), () => 65537)).toBe(131073)
  })
})

describe('text', () => {
  test('a schedule reads like the loops that it is', () => {
    expect(printKernel(matrixVector())).toMatchInlineSnapshot(`
      "kernel k(inout float32 y[], in float32 w[], in float32 x[], size rows, size depth) {
        for r0 < (rows down to 4) step 4 parallel 16 {
          float32 sums[4, 8] = 0f
          for k0 < (depth down to 8) step 8 {
            for r < 4 unroll {
              for k < 8 lanes {
                sums[r, k] = mulAdd(w[r0 * depth + r * depth + k0 + k], x[k0 + k], sums[r, k])
              }
            }
          }
          for r < 4 unroll {
            float32 last = reduceLanes(add, sums[r])
            for d < (depth - (depth down to 8)) {
              last add= (w[(depth down to 8) + r0 * depth + r * depth + d] * x[(depth down to 8) + d])
            }
            y[r0 + r] = last
          }
        }
        for rest < (rows - (rows down to 4)) {
          float32 acc = 0f
          for all < depth {
            acc add= (w[((rows down to 4) * depth) + rest * depth + all] * x[all])
          }
          y[(rows down to 4) + rest] = acc
        }
      }"
    `)
  })

  test('what differs in a step, a mode, a grain, a size of scratch memory or a place has another text', () => {
    const part = scratch('part', 'float32', rows)
    const step = loopVar('i', rows, 2)
    const one = (mode: 'serial' | 'parallel', loop: LoopVar = i, grain = 1): string =>
      printKernel(kernel([forLoop(loop, mode, [store(y, at([loop, 1]), f32(0))], grain)]))
    const texts = [
      one('serial'),
      one('parallel'),
      one('parallel', i, 2),
      one('serial', step),
      ...[part, scratch('part', 'float32', 3), scratch('part', 'float32', rows, 'thread'), scratch('part', 'float64', rows)].map((memory) =>
        printKernel(kernel([], [memory])),
      ),
      ...[lookup([1, 2], at()), lookup([1, 2], from(1)), lookup([1, 3], at())].map((value) =>
        printKernel(kernel([store(y, at(), cast(value, 'float32'))])),
      ),
      ...[element(sums, 1, 2), element(sums, 2, 1), reduceLanes('add', sums, 1), reduceLanes('max', sums, 1)].map((value) =>
        printKernel(kernel([zeros, store(y, at(), value)])),
      ),
    ]
    expect(new Set(texts).size).toBe(texts.length)
  })

  test('an expression that reads an array is written again after the array has changed', () => {
    const next = call('add', element(sums, 0, 0), f32(1))
    const text = printKernel(kernel([zeros, store(y, at(), next), setElement(sums, [0, 0], next), store(y, at(), next)]))
    expect(text.match(/let \$\d+ = \(sums\[0, 0\] \+ 1f\)/g)).toHaveLength(2)
  })
})

describe('verifyKernel names the statement and the rule', () => {
  const wrong = (body: readonly Stmt[], message: RegExp, parts: readonly Scratch[] = []): void => {
    const verify = (): void => verifyKernel(kernel(body, parts))
    expect(verify).toThrow(KernelError)
    expect(verify).toThrow(message)
  }
  const nothing: readonly Stmt[] = []

  test('the example passes', () => {
    expect(() => verifyKernel(matrixVector())).not.toThrow()
  })

  test('of loops', () => {
    wrong([forLoop(loopVar('i', 4, 0), 'serial', nothing)], /statement 1 \(serial loop over i\): the step 0 must be a positive integer/)
    wrong([forLoop(loopVar('i', 4, 1.5), 'serial', nothing)], /the step 1\.5 must/)
    wrong([forLoop(i, 'parallel', nothing, 0)], /the grain 0 must be a positive integer/)
    wrong([forLoop(loopVar('i', 4, 2), 'simd', nothing)], /the step 2 of a simd loop must be 1/)
    wrong([forLoop(loopVar('i', 4, 2), 'lanes', nothing)], /the step 2 of a lanes loop must be 1/)
    for (const mode of ['unroll', 'lanes'] as const) wrong([forLoop(i, mode, nothing)], /the extent of a loop that is written out must be a number/)
    wrong(
      [forLoop(r, 'unroll', [forLoop(i, 'parallel', nothing)])],
      /it is inside the unroll loop over r; a parallel loop may only be inside loops that are serial/,
    )
    wrong([forLoop(r, 'lanes', [forLoop(k, 'lanes', nothing)])], /it is inside the lanes loop over r/)
    wrong([forLoop(r, 'lanes', [forLoop(i, 'serial', [forLoop(k, 'simd', nothing)])])], /it is inside the lanes loop over r/)
    wrong([forLoop(i, 'simd', [forLoop(k, 'lanes', nothing)])], /it is inside the simd loop over i/)
    wrong([forLoop(loopVar('i', sizeSum(sizeParam('other'), 1)), 'serial', nothing)], /the size other is not among/)
  })

  test('iterations in lanes or in parallel change nothing outside', () => {
    const acc = local('acc', 'float32')
    for (const [mode, loop] of [
      ['parallel', i],
      ['lanes', k],
    ] as const) {
      wrong(
        [declare(acc, f32(0)), forLoop(loop, mode, [accumulate(acc, 'add', f32(1))])],
        new RegExp(`the ${mode} loop over ${loop.name} changes acc`),
      )
      wrong([declare(acc, f32(0)), forLoop(loop, mode, [forLoop(r, 'unroll', [assign(acc, f32(1))])])], /changes acc, which is declared outside it/)
    }
    wrong([zeros, forLoop(i, 'parallel', [setElement(sums, [0, 0], f32(1))])], /the parallel loop over i changes sums/)
    wrong([zeros, forLoop(k, 'lanes', [setElement(sums, [0, 1], f32(1))])], /in the lanes loop over k, the last index of sums must be its variable/)
    for (const other of [element(sums, 0, 1), reduceLanes('add', sums, 0)])
      wrong(
        [zeros, forLoop(k, 'lanes', [setElement(sums, [0, k], other)])],
        /the lanes loop over k sets elements of sums, so it must read those only/,
      )
    expect(() => verifyKernel(kernel([zeros, forLoop(k, 'lanes', [setElement(sums, [0, k], element(sums, 1, k))])]))).not.toThrow()
    const square = localArray('square', 'float32', [8, 8])
    wrong([declareArray(square, f32(0)), forLoop(k, 'lanes', [setElement(square, [k, 0], f32(1))])], /the last index of square must be its variable/)
    expect(() =>
      verifyKernel(kernel([forLoop(i, 'parallel', [declare(acc, f32(0)), assign(acc, f32(1)), zeros, overSums(set(f32(1)))])])),
    ).not.toThrow()
  })

  test('of local arrays', () => {
    const get = (...indices: Parameters<typeof element>[1][]): Stmt => store(y, at(), element(sums, ...indices))
    wrong([get(0, 0)], /the array sums is not declared here/)
    wrong([forLoop(r, 'unroll', [zeros]), get(0, 0)], /the array sums is not declared here/)
    wrong([zeros, zeros], /the local sums is already declared/)
    wrong([declareArray(localArray('a', 'float32', []), f32(0))], /the shape \[\] must have positive integers/)
    wrong([declareArray(localArray('a', 'float32', [2, 0]), f32(0))], /the shape \[2, 0\] must/)
    wrong([declareArray(sums, constant('int32', 0))], /a value of dtype int32 is used where float32 is expected/)
    wrong([zeros, setElement(sums, [0, 0], constant('int32', 0))], /a value of dtype int32/)
    wrong([zeros, get(0)], /the array sums of shape \[4, 8\] takes 2 indices here, not 1/)
    wrong([zeros, store(y, at(), reduceLanes('add', sums, 0, 0))], /takes 1 indices here, not 2/)
    wrong([zeros, get(4, 0)], /index 1 of sums goes from 4 to 4, outside its size 4/)
    wrong([zeros, get(0, -1)], /index 2 of sums goes from -1 to -1, outside its size 8/)
    wrong([zeros, forLoop(r, 'unroll', [get(0, from(2, [r, 2]))])], /index 2 of sums goes from 2 to 8/)
    wrong([zeros, forLoop(r, 'unroll', [get(0, from(2, [r, -1]))])], /index 2 of sums goes from -1 to 2/)
    wrong([zeros, forLoop(i, 'serial', [get(0, i)])], /the variable i indexes sums, so its loop must be unroll or lanes/)
    wrong([zeros, get(0, r)], /the variable r indexes sums/)
    wrong([zeros, forLoop(r, 'unroll', [get(0, at([r, depth]))])], /the stride of r in sums must be a number/)
    wrong([zeros, get(0, from(depth))], /index 2 of sums must be known when code is written/)
    const computed = (value: Expr, stride: Size = 1): Index => ({ ...at(), dynamic: [{ value, stride }] })
    const place = cast(load(x, at()), 'int32')
    expect(() => verifyKernel(kernel([zeros, get(0, computed(place)), forLoop(r, 'lanes', [get(1, computed(iota(r)))])]))).not.toThrow()
    wrong([zeros, get(computed(place), 0)], /index 1 of sums must be known/)
    for (const index of [computed(place, 2), { ...computed(place), base: 1 }, { ...at([r, 1]), dynamic: computed(place).dynamic }])
      wrong(
        [zeros, forLoop(r, 'unroll', [get(0, index)])],
        /the number that chooses an element of sums while the kernel runs must be the whole last index/,
      )
    wrong([zeros, get(0, computed(load(x, at())))], /int32/)
    wrong([zeros, setElement(sums, [0, computed(place)], f32(1))], /set at a place from a table, or at one that is computed/)
    const long = localArray('long', 'float32', [17])
    wrong(
      [declareArray(long, f32(0)), store(y, at(), element(long, computed(place)))],
      /a number chooses one of 17 elements of long while the kernel runs; there may be 16/,
    )
    wrong([zeros, forLoop(r, 'lanes', [get(0, from(4, [r, 1]))])], /the lanes variable r must be the whole index 2 of sums/)
    wrong([zeros, forLoop(r, 'lanes', [get(r, r)])], /two indices of sums are the lanes variable r/)
    wrong([forLoop(i, 'simd', [zeros])], /the array sums is declared inside the simd loop over i/)
    wrong([forLoop(k, 'lanes', [zeros])], /the array sums is declared inside the lanes loop over k/)
    wrong([zeros, forLoop(i, 'simd', [store(y, at([i, 1]), element(sums, 0, 0))])], /the array sums is used inside the simd loop over i/)
    wrong(
      [zeros, store(y, at(), { ...element(sums, 0, 0), dtype: 'float32', array: localArray('sums', 'float64', [4, 8]) })],
      /the array sums is float64 but is read as float32/,
    )
    // The last value of a variable, not its extent, must be inside.
    expect(() => verifyKernel(kernel([zeros, forLoop(loopVar('s', 8, 4), 'unroll', [get(0, 7), get(3, 4)])]))).not.toThrow()
  })

  test('of tables', () => {
    const four = lookup([3, 0, 2, 1], at([r, 1]))
    const get = (place: Expr, stride: Size = 1): Stmt => store(y, at(), element(sums, 0, { ...at(), dynamic: [{ value: place, stride }] }))
    const table = (numbers: readonly number[], place: Index = at()): Stmt => store(y, at(), cast(lookup(numbers, place), 'float32'))
    expect(() => verifyKernel(kernel([zeros, forLoop(r, 'unroll', [get(four), get(four, 2)]), forLoop(r, 'lanes', [get(four)])]))).not.toThrow()
    wrong([zeros, forLoop(r, 'unroll', [get(four, 3)])], /index 2 of sums goes from 0 to 9, outside its size 8/)
    wrong([zeros, forLoop(r, 'unroll', [get(four, depth)])], /index 2 of sums must be known/)
    wrong(
      [zeros, forLoop(r, 'unroll', [setElement(sums, [0, { ...at(), dynamic: [{ value: four, stride: 1 }] }], f32(1))])],
      /set at a place from a table/,
    )
    wrong([forLoop(i, 'serial', [table([1, 2], at([i, 1]))])], /the variable i indexes a table, so its loop must be unroll or lanes/)
    wrong([table([1, 2], { ...at(), dynamic: [{ value: constant('int32', 1), stride: 1 }] })], /the place in a table must be known/)
    wrong([forLoop(r, 'unroll', [table([1, 2, 3], at([r, 1]))])], /the place in a table goes from 0 to 3, outside its 3 numbers/)
    wrong([forLoop(r, 'unroll', [table([1, 2, 3], from(-1, [r, 1]))])], /the place in a table goes from -1 to 2/)
    for (const numbers of [[], [-1], [0.5], [2 ** 31]])
      wrong([table(numbers)], /the numbers of a table must be integers from 0 to 2147483647, at least one/)
  })

  test('of scratch memory', () => {
    const part = scratch('part', 'float32', rows)
    wrong([store(part, at(), f32(0))], /the scratch memory part is not among the kernel's/)
    wrong([store(y, at(), load(part, at()))], /the scratch memory part is not among the kernel's/)
    wrong([], /scratch y: a parameter or another scratch memory has this name/, [scratch('y', 'float32', 1)])
    wrong([], /scratch part: a parameter or another scratch memory has this name/, [part, scratch('part', 'int32', 1)])
    wrong([], /scratch part: the size other is not among/, [scratch('part', 'float32', sizeParam('other'))])
    wrong([store(part, at(), constant('int32', 0))], /a value of dtype int32/, [part])
    expect(() =>
      verifyKernel(kernel([store(part, at(), f32(0)), store(part, at(), f32(1), 'add'), store(y, at(), load(part, at()))], [part])),
    ).not.toThrow()
  })

  test('mulAdd is defined for floats', () => {
    const one = constant('int32', 1)
    wrong([store(y, at(), cast(call('mulAdd', one, one, one), 'float32'))], /mulAdd is not defined for int32/)
  })
})

describe('meaning', () => {
  /** Runs the statements; returns `y`. */
  const run = (body: readonly Stmt[], parts: readonly Scratch[] = [], args: Args = {}): number[] => {
    const made = kernel(body, parts)
    verifyKernel(made)
    const all = {
      y: new Float32Array(8),
      w: Float32Array.from({ length: 64 }, (_, j) => j),
      x: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
      rows: 4,
      depth: 8,
      ...args,
    }
    return Array.from(runOracle(made, all)['y'] as Float32Array)
  }

  test('loops take steps while they are below their extent', () => {
    const step = loopVar('s', rows, 3)
    const mark = [store(y, at([step, 1]), cast(call('add', iota(step), constant('int32', 1)), 'float32'))]
    for (const mode of ['serial', 'parallel'] as const) {
      expect(run([forLoop(step, mode, mark)], [], { rows: 7 })).toEqual([1, 0, 0, 4, 0, 0, 7, 0])
      expect(run([forLoop(step, mode, mark)], [], { rows: 6 })).toEqual([1, 0, 0, 4, 0, 0, 0, 0])
      expect(run([forLoop(step, mode, mark)], [], { rows: 0 })).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
    }
    const known = loopVar('s', 5, 2)
    expect(run([forLoop(known, 'unroll', [store(y, at([known, 1]), f32(1))])])).toEqual([1, 0, 1, 0, 1, 0, 0, 0])
  })

  test('the example multiplies a matrix and a vector, whatever the sizes', () => {
    for (const [m, n] of [
      [4, 8],
      [7, 9],
      [3, 7],
      [8, 0],
      [0, 8],
    ] as const) {
      const [a, b] = [Float32Array.from({ length: m * n }, (_, j) => (j % 5) - 2), Float32Array.from({ length: n }, (_, j) => (j % 3) + 1)]
      const expected = Array.from({ length: 8 }, (_, row) => (row < m ? b.reduce((sum, value, d) => sum + value * (a[row * n + d] ?? 0), 0) : 0))
      expect(run(matrixVector().body, [], { w: a, x: b, rows: m, depth: n })).toEqual(expected)
    }
  })

  test('elements of arrays keep what they are set to; those along the last dimension are combined', () => {
    const values = [zeros, overSums(set(call('add', load(w, at([r, 8], [k, 1])), f32(1))))]
    const out = (...all: readonly Expr[]): number[] => run([...values, ...all.map((value, j) => store(y, from(j), value))]).slice(0, all.length)
    expect(out(element(sums, 0, 0), element(sums, 3, 7), element(sums, 1, 2))).toEqual([1, 32, 11])
    const every = (combine: 'add' | 'min' | 'max', row: number): Expr => reduceLanes(combine, sums, row)
    expect(out(every('add', 0), every('min', 1), every('max', 2))).toEqual([36, 9, 24])
    // Another iteration declares the array anew.
    expect(
      run([
        forLoop(i, 'serial', [zeros, setElement(sums, [0, 0], call('add', element(sums, 0, 0), f32(1))), store(y, at([i, 1]), element(sums, 0, 0))]),
      ]).slice(0, 4),
    ).toEqual([1, 1, 1, 1])
    // In lanes along the first dimension, a row becomes a column.
    expect(run([...values, forLoop(r, 'lanes', [store(y, at([r, 1]), element(sums, r, 5))])]).slice(0, 4)).toEqual([6, 14, 22, 30])
  })

  test('scratch memory keeps what is written to it; per thread only in an iteration, and unwritten memory shows', () => {
    const [mine, ours] = [scratch('mine', 'float32', 1, 'thread'), scratch('ours', 'float32', rows)]
    const body = (before: readonly Stmt[]): Stmt[] => [
      forLoop(i, 'parallel', [...before, store(ours, at([i, 1]), load(mine, at()))]),
      forLoop(i, 'serial', [store(y, at([i, 1]), load(ours, at([i, 1])))]),
    ]
    expect(run(body([store(mine, at(), cast(iota(i), 'float32'))]), [mine, ours]).slice(0, 4)).toEqual([0, 1, 2, 3])
    const first = forLoop(i, 'serial', [store(mine, at(), f32(5))])
    expect(run([first, ...body([])], [mine, ours]).slice(0, 4)).toEqual([NaN, NaN, NaN, NaN])
    expect(run([store(y, at(), load(ours, at()))], [mine, ours])[0]).toBeNaN()
    expect(() => run([store(ours, from(4), f32(0))], [ours])).toThrow('element 4 of ours lies outside its 4 elements')
  })

  test('the scratch memory of a call has a size, with room for its alignment', () => {
    const parts = [scratch('a', 'float32', rows), scratch('b', 'int8', 65), scratch('c', 'float64', sizeProduct(rows, 2))]
    expect(scratchBytes(kernel([], parts), () => 17)).toBe(128 + 128 + 320 + 64)
    expect(scratchBytes(kernel([]), () => 17)).toBe(0)
  })

  test('mulAdd multiplies and adds; sizes are values', () => {
    expect(
      run([store(y, at(), call('mulAdd', f32(3), f32(4), f32(5))), store(y, from(1), cast(sizeOf(roundedDown(depth, 3)), 'float32'))]).slice(0, 2),
    ).toEqual([17, 6])
  })
})
