// The text form of kernels, and the errors of their specification.
import { describe, expect, test } from 'vitest'
import { compileKernel } from 'tensorfx/kernels'
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
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr, Kernel, Param, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { printKernel } from '../../../src/kernels/ir/print.ts'
import { verifyKernel } from '../../../src/kernels/ir/verify.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'

const n = sizeParam('n')
const i = loopVar('i', n)
const j = loopVar('j', 8)
const [out, a] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32')]
const acc = local('acc', 'float32')
const f32 = (value: number): Expr => constant('float32', value)
const kernel = (body: readonly Stmt[], params: readonly Param[] = [out, a, n]): Kernel => ({ name: 'k', params, body })

describe('text', () => {
  test('a kernel reads like the loops that it is', () => {
    const mask = call('lt', iota(j), constant('int32', 5))
    const body = [
      forLoop(i, 'serial', [
        declare(acc, f32(0)),
        forLoop(j, 'simd', [
          accumulate(
            acc,
            'add',
            call(
              'exp',
              load(
                a,
                {
                  base: 2,
                  terms: [
                    { loop: i, stride: n },
                    { loop: j, stride: 1 },
                  ],
                  dynamic: [],
                },
                mask,
              ),
            ),
          ),
        ]),
        store(out, at([i, 1]), call('div', read(acc), f32(-0))),
      ]),
    ]
    expect(printKernel(kernel(body))).toMatchInlineSnapshot(`
      "kernel k(out float32 out[], in float32 a[], size n) {
        for i < n {
          float32 acc = 0f
          for j < 8 simd {
            acc add= exp(((j < 5) ? a[2 + i * n + j] : 0))
          }
          out[i] = (acc / -0f)
        }
      }"
    `)
  })

  test('a shared expression is written once, and again after a local that it reads has changed', () => {
    const x = load(a, at([i, 1]))
    const square = call('mul', x, x)
    const next = call('add', read(acc), square)
    const body = [forLoop(i, 'simd', [declare(acc, square), store(out, at([i, 1]), next), assign(acc, next), store(out, at([i, 1]), next)])]
    expect(printKernel(kernel(body))).toMatchInlineSnapshot(`
      "kernel k(out float32 out[], in float32 a[], size n) {
        for i < n simd {
          let $0 = a[i]
          let $1 = ($0 * $0)
          float32 acc = $1
          let $2 = (acc + $1)
          out[i] = $2
          acc = $2
          let $3 = (acc + $1)
          out[i] = $3
        }
      }"
    `)
  })

  test('kernels that differ only in which loads are shared have different texts, because a shared load keeps its value', () => {
    const io = bufferParam('io', 'float32', 'readwrite')
    const x = load(io, at([i, 1]))
    const body = (second: Expr): Stmt[] => [forLoop(i, 'simd', [store(io, at([i, 1]), call('neg', x)), store(out, at([i, 1]), second)])]
    expect(printKernel(kernel(body(x), [out, io, n]))).not.toBe(printKernel(kernel(body(load(io, at([i, 1]))), [out, io, n])))
  })

  test('two loops of the same name are told apart', () => {
    const other = loopVar('i', 4)
    const nest = (first: typeof i, second: typeof i): string =>
      printKernel(kernel([forLoop(i, 'serial', [forLoop(other, 'serial', [store(out, at([first, 1], [second, 4]), f32(0))])])]))
    expect(nest(i, other)).not.toBe(nest(other, i))
  })

  test('every kind of parameter, statement and value has its form', () => {
    const [io, count, rate, flag] = [
      bufferParam('io', 'float64', 'readwrite'),
      sizeParam('count'),
      scalarParam('rate', 'float32'),
      bufferParam('flag', 'bool'),
    ]
    const k = loopVar('k', count)
    const x = local('x', 'int32')
    const index = { base: count, terms: [{ loop: k, stride: count }], dynamic: [{ value: read(x), stride: 4 }] }
    const body = [
      forLoop(k, 'serial', [
        declare(x, call('add', call('mul', iota(k), constant('int32', -3)), { kind: 'sizeOf', dtype: 'int32', size: count })),
        assign(x, call('min', read(x), constant('int32', 7))),
        store(io, index, cast(scalar(rate), 'float64'), 'max'),
        store(io, at(), call('where', load(flag, at([k, 2])), constant('float64', 1.5), constant('float64', NaN))),
        store(io, { base: 3, terms: [], dynamic: [] }, cast(call('not', constant('bool', 1)), 'float64')),
      ]),
    ]
    expect(printKernel(kernel(body, [io, count, rate, flag]))).toMatchInlineSnapshot(`
      "kernel k(inout float64 io[], size count, float32 rate, in bool flag[]) {
        for k < count {
          int32 x = ((k * -3) + count)
          x = min(x, 7)
          io[count + k * count + int32(x) * 4] max= float64(rate)
          io[0] = where(flag[k * 2], 1.5d, NaNd)
          io[3] = float64(not(1b))
        }
      }"
    `)
  })

  test('an expression that is shared with a loop is written before it only where it was used before it', () => {
    const x = call('exp', load(a, at()))
    const body = [forLoop(i, 'serial', [store(out, at([i, 1]), x)]), forLoop(i, 'serial', [store(out, at([i, 1]), x)])]
    expect(printKernel(kernel(body))).toMatchInlineSnapshot(`
      "kernel k(out float32 out[], in float32 a[], size n) {
        for i < n {
          let $0 = exp(a[0])
          out[i] = $0
        }
        for i < n {
          let $1 = exp(a[0])
          out[i] = $1
        }
      }"
    `)
    const before = [store(out, at(), x), forLoop(i, 'serial', [store(out, at([i, 1]), x)])]
    expect(printKernel(kernel(before))).toContain('  let $0 = exp(a[0])\n  out[0] = $0\n  for i < n {\n    out[i] = $0\n  }')
  })

  test('a value that a loop changes is written again after the loop, and in it', () => {
    const next = call('add', read(acc), f32(1))
    const body = [declare(acc, f32(0)), store(out, at(), next), forLoop(j, 'serial', [assign(acc, next)]), store(out, at(), next)]
    const text = printKernel(kernel(body))
    expect(text.match(/let \$\d+ = \(acc \+ 1f\)/g)).toHaveLength(3)
  })

  test('a deeply shared expression has a short text and a small module', () => {
    let x: Expr = iota(i)
    for (let k = 0; k < 60; k++) x = call('add', x, x)
    const target = bufferParam('out', 'int32', 'write')
    const deep = kernel([forLoop(i, 'simd', [store(target, at([i, 1]), x)])], [target, n])
    expect(printKernel(deep).length).toBeLessThan(3000)
    verifyKernel(deep)
    expect(emitKernel(deep).length).toBeLessThan(6000)
  })
})

test('compileKernel verifies what it compiles, in every program but small ones', () => {
  const wrong = kernel([store(a, at(), f32(0))])
  expect(() => compileKernel(wrong)).toThrow(KernelError)
})

describe('verifyKernel names the statement and the rule', () => {
  const wrong = (body: readonly Stmt[], message: RegExp, params?: readonly Param[]): void => {
    const verify = (): void => verifyKernel(kernel(body, params))
    expect(verify).toThrow(KernelError)
    expect(verify).toThrow(message)
  }
  const x = load(a, at([i, 1]))

  test('names say something, and modes are those that there are', () => {
    const unnamed = /a name must not be empty/
    wrong([], unnamed, [bufferParam('', 'float32')])
    wrong([declare(local('', 'float32'), f32(0))], unnamed)
    wrong([forLoop(loopVar('', 3), 'serial', [])], unnamed)
    expect(() => verifyKernel({ ...kernel([]), name: '' })).toThrow(unnamed)
    // @ts-expect-error there is no such mode
    wrong([forLoop(loopVar('i', 3), 'sideways', [])], /a loop cannot be 'sideways', only serial, simd, parallel, unroll, lanes/)
    const scratch = { kind: 'scratch', name: 's', dtype: 'float32', elements: 4 } as const
    expect(() => verifyKernel({ ...kernel([]), scratch: [{ ...scratch, name: '', per: 'call' }] })).toThrow(unnamed)
    // @ts-expect-error nothing else has scratch memory
    expect(() => verifyKernel({ ...kernel([]), scratch: [{ ...scratch, per: 'process' }] })).toThrow(/that of a call or of a thread, not 'process'/)
  })

  test('parameters are listed once and used as declared', () => {
    wrong([], /parameter a: two parameters have this name/, [a, a])
    wrong([store(out, at(), load(bufferParam('b', 'float32'), at()))], /kernel k, statement 1 \(store to out\): the buffer b is not among/)
    wrong([store(a, at(), f32(0))], /the buffer a is read-only/)
    wrong([store(out, at(), f32(0), 'add')], /a store that combines also reads out; declare its parameter as 'readwrite'/)
    wrong([store(out, at(), scalar(scalarParam('s', 'float32')))], /the scalar s is not among/)
    wrong([forLoop(loopVar('i', sizeParam('m')), 'serial', [])], /the size m is not among/)
    const m = sizeParam('m')
    wrong([store(out, { base: m, terms: [], dynamic: [] }, f32(0))], /the size m is not among the kernel's parameters/)
    wrong([forLoop(i, 'serial', [store(out, at([i, m]), f32(0))])], /statement 1\.1 .*the size m is not among/)
    wrong([store(out, { base: 0, terms: [], dynamic: [{ value: constant('int32', 0), stride: m }] }, f32(0))], /the size m is not among/)
    wrong([store(out, at(), cast({ kind: 'sizeOf', dtype: 'int32', size: m }, 'float32'))], /the size m is not among/)
    wrong([store(bufferParam('z', 'float32', 'write'), at(), f32(0))], /the buffer z is not among/)
    wrong([store(out, at(), load(a, at(), call('lt', f32(0), load(bufferParam('z', 'float32'), at()))))], /the buffer z is not among/)
  })

  test('what they keep passes', () => {
    const io = bufferParam('io', 'float32', 'readwrite')
    const s = scalarParam('s', 'float32')
    const fine = (body: readonly Stmt[], params: readonly Param[] = [out, io, a, n, s]): void =>
      expect(() => verifyKernel(kernel(body, params))).not.toThrow()
    fine([])
    fine([forLoop(loopVar('z', 0), 'simd', [])])
    fine([forLoop(i, 'serial', [forLoop(j, 'simd', [store(io, at([i, 8], [j, 1]), scalar(s), 'add')])])])
    // One element for each lane, or lanes that may collide only where the index is computed.
    fine([forLoop(i, 'simd', [store(io, { base: 0, terms: [], dynamic: [{ value: iota(i), stride: 1 }] }, f32(1), 'add')])])
    // The same loop variable again, once its loop is over; locals of a body are gone after it.
    fine([forLoop(i, 'serial', [declare(acc, f32(0))]), forLoop(i, 'serial', [declare(acc, f32(1))])])
    fine([declare(acc, f32(0)), forLoop(i, 'simd', [accumulate(acc, 'add', f32(1)), accumulate(acc, 'add', f32(2))]), store(out, at(), read(acc))])
    fine([forLoop(i, 'simd', [declare(acc, f32(0)), forLoop(j, 'serial', [accumulate(acc, 'add', f32(1))]), store(out, at([i, 1]), read(acc))])])
    fine([forLoop(i, 'simd', [declare(acc, f32(0)), assign(acc, call('add', read(acc), f32(1))), store(out, at([i, 1]), read(acc))])])
    fine([store(out, at(), load(a, at(), constant('bool', 1)))])
  })

  test('dtypes of parameters and locals are those that they are read as', () => {
    const s = scalarParam('s', 'int32')
    wrong([store(out, at(), { kind: 'scalar', dtype: 'float32', param: s })], /the scalar s is int32 but is read as float32/, [out, s])
    const d = bufferParam('d', 'float64')
    wrong(
      [store(out, at(), { kind: 'load', dtype: 'float32', buffer: d, index: at(), mask: null })],
      /the buffer d is float64 but is read as float32/,
      [out, d],
    )
    const x = local('x', 'int32')
    wrong(
      [declare(x, constant('int32', 0)), store(out, at(), { kind: 'local', dtype: 'float32', local: x })],
      /the local x is int32 but is read as float32/,
    )
    wrong([declare(x, f32(1))], /statement 1 \(declare x\): a value of dtype float32 is used where int32 is expected/)
    wrong([declare(acc, f32(0)), assign(acc, constant('int32', 1))], /statement 2 \(assign acc\): a value of dtype int32/)
    wrong([store(out, at(), load(a, at(), constant('int32', 1)))], /a value of dtype int32 is used where bool is expected/)
    wrong([store(out, at(), { kind: 'call', dtype: 'float32', op: 'lt', args: [f32(1), f32(2)] })], /lt yields bool, not float32/)
    wrong([store(out, at(), { kind: 'call', dtype: 'float32', op: 'neg', args: [constant('int32', 2)] })], /neg yields int32, not float32/)
    wrong([store(out, at(), { kind: 'call', dtype: 'float32', op: 'where', args: [constant('bool', 1), f32(1)] })], /where takes 3 operands, not 2/)
    wrong(
      [forLoop(j, 'serial', [store(out, at(), cast(call('add', iota(j), cast(read(acc), 'int32')), 'float32'))])],
      /the local acc is not declared here/,
    )
  })

  test('loops and locals are used where they are in scope', () => {
    wrong([store(out, at([i, 1]), f32(0))], /uses the loop variable i outside its loop/)
    wrong([forLoop(i, 'serial', []), store(out, at(), cast(iota(i), 'float32'))], /statement 2 .*the loop variable i is read outside its loop/)
    wrong(
      [forLoop(i, 'serial', [forLoop(i, 'serial', [])])],
      /statement 1\.1 \(serial loop over i\): the loop variable i is already used by an enclosing loop/,
    )
    wrong([assign(acc, f32(0))], /the local acc is not declared here/)
    wrong([forLoop(i, 'serial', [declare(acc, f32(0))]), store(out, at(), read(acc))], /the local acc is not declared here/)
    wrong([declare(acc, f32(0)), declare(acc, f32(0))], /acc is already declared/)
    wrong([forLoop(loopVar('z', -1), 'serial', [])], /extent -1 must be a non-negative integer/)
    wrong([forLoop(loopVar('z', 1.5), 'serial', [])], /extent 1.5 must be a non-negative integer/)
    wrong([store(out, at(), read(acc)), declare(acc, f32(0))], /statement 1 \(store to out\): the local acc is not declared here/)
    wrong([accumulate(acc, 'add', f32(0))], /statement 1 \(accumulate acc\): the local acc is not declared here/)
    wrong([declare(acc, f32(0)), forLoop(i, 'serial', [declare(acc, f32(0))])], /acc is already declared/)
    // An expression that was right in an inner scope is checked again outside.
    const shared = call('neg', read(acc))
    wrong(
      [forLoop(i, 'serial', [declare(acc, f32(0)), store(out, at([i, 1]), shared)]), store(out, at(), shared)],
      /statement 2 .*the local acc is not declared here/,
    )
  })

  test('dtypes agree', () => {
    wrong([store(out, at(), constant('int32', 1))], /dtype int32 is used where float32 is expected; cast it/)
    wrong([store(out, at(), call('add', f32(1), constant('int32', 1)))], /operands of add have different dtypes, float32 and int32/)
    wrong([store(out, at(), call('where', f32(1), f32(1), f32(2)))], /dtype float32 is used where bool/)
    wrong([store(out, at(), call('shl', f32(1), f32(1)))], /shl is not defined for float32, only for uint8, int8, int16, int32, int64/)
    wrong([store(out, at(), call('neg', f32(1), f32(2)))], /neg takes 1 operands, not 2/)
    wrong([store(out, { base: 0, terms: [], dynamic: [{ value: f32(1), stride: 1 }] }, f32(1))], /dtype float32 is used where int32/)
  })

  test('iterations of a simd loop are independent', () => {
    const start = declare(acc, f32(0))
    wrong(
      [start, forLoop(i, 'simd', [assign(acc, x)])],
      /the simd loop over i assigns acc, which is declared outside it; only accumulations may cross iterations/,
    )
    wrong([start, forLoop(i, 'simd', [accumulate(acc, 'add', x), store(out, at([i, 1]), read(acc))])], /reads acc, which it accumulates into/)
    wrong([start, forLoop(i, 'simd', [accumulate(acc, 'add', x), accumulate(acc, 'max', x)])], /with both add and max/)
    wrong([forLoop(i, 'simd', [forLoop(j, 'simd', [])])], /statement 1\.1 \(simd loop over j\): it is inside the simd loop over i/)
    const io = bufferParam('io', 'float32', 'readwrite')
    wrong([forLoop(i, 'simd', [store(io, at(), x, 'add')])], /combine into one element of io; make the loop serial or accumulate into a local/, [
      io,
      a,
      n,
    ])
    wrong([start, forLoop(i, 'simd', [forLoop(j, 'serial', [assign(acc, x)])])], /the simd loop over i assigns acc/)
    wrong(
      [start, forLoop(i, 'simd', [accumulate(acc, 'add', x), forLoop(j, 'serial', [store(out, at([i, 1]), call('neg', read(acc)))])])],
      /reads acc, which it accumulates into/,
    )
    const position = cast(read(acc), 'int32')
    wrong(
      [start, forLoop(i, 'simd', [accumulate(acc, 'add', x), store(out, { base: 0, terms: [], dynamic: [{ value: position, stride: 1 }] }, x)])],
      /reads acc, which it accumulates into/,
    )
    const copy = local('copy', 'float32')
    wrong([start, forLoop(i, 'simd', [accumulate(acc, 'add', x), declare(copy, read(acc))])], /reads acc, which it accumulates into/)
    wrong([start, forLoop(i, 'simd', [accumulate(acc, 'add', read(acc))])], /reads acc, which it accumulates into/)
  })
})
